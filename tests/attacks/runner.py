"""Run an attack, in this process or in one of its own, and hold it to the rules of all."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TypeAlias
from unittest.mock import patch

from fusion_bench.cli import main
from tests.attacks.attack import Attack, Outcome
from tests.child_processes import drop_progress

#: Seconds after which a command hangs; it takes one or two on a machine with nothing else to do.
LIMIT = 120.0
#: How a command is run: arguments, folder, environment.
Runner: TypeAlias = Callable[[Sequence[str], Path, Mapping[str, str]], Outcome]
#: Exit codes with one line on standard error that starts with ``error:``.
REFUSALS = frozenset({2, 130, 143})


def run_here(
    arguments: Sequence[str], root: Path, environment: Mapping[str, str] | None = None
) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with (
        chdir(root),
        patch.dict(os.environ, environment or {}),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = main(arguments)
    return Outcome(code, out.getvalue(), err.getvalue())


def run_in_child(
    arguments: Sequence[str],
    root: Path,
    environment: Mapping[str, str] | None = None,
    prepare: Callable[[], None] | None = None,
) -> Outcome:
    """Run a command in a process of its own; ``prepare`` is called in it before it starts."""
    done = subprocess.run(
        [sys.executable, "-m", "fusion_bench", *arguments],
        cwd=root,
        env=child_environment(environment),
        preexec_fn=prepare,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=LIMIT,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, drop_progress(done.stderr))


def child_environment(changed: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a child: this package first, one thread, and the changes."""
    package = str(Path(__file__).parent.parent.parent)
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH", ""))))
    return {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", **(changed or {})}


def restore_signals() -> None:
    """In a child: nohup and the background of a shell ignore signals, and children inherit that."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def run_attack(attack: Attack, root: Path, run: Runner = run_here) -> Outcome:
    """Do what an attack says to the project in a folder, and check how it ends."""
    project = read_files(root)
    attack.spoil(root)
    before = read_files(root)
    outcome = run(attack.arguments, root, attack.environment)
    after = read_files(root)
    check_streams(attack, outcome)
    check_files(attack, before, after, root)
    if attack.next_exit_code is not None:
        restore(root, project)
        again = run(attack.arguments, root, {})
        assert again.code == attack.next_exit_code, again
    return outcome


def check_streams(attack: Attack, outcome: Outcome) -> None:
    """The exit code, one line of error where one is due, and what must and must not be said."""
    assert "Traceback" not in outcome.err, outcome.err
    assert outcome.code == attack.exit_code, outcome
    if attack.exit_code in REFUSALS:
        assert outcome.err.startswith("error: "), outcome
        assert outcome.err.count("\n") == 1, outcome.err
        assert outcome.out == "", outcome.out
    spoken = outcome.err if attack.exit_code in REFUSALS else outcome.out + outcome.err
    for part in attack.says:
        assert part in spoken, f"{part!r} is not in {spoken!r}"
    for part in attack.never:
        assert part not in outcome.out + outcome.err, f"{part!r} was printed"


def check_files(
    attack: Attack, before: Mapping[str, bytes], after: Mapping[str, bytes], root: Path
) -> None:
    """Only what may be written was, no draft is left, and no file holds what none may hold."""
    changed = {name for name in before.keys() | after if before.get(name) != after.get(name)}
    allowed = {name for name in changed for pattern in attack.writes if _matches(name, pattern)}
    assert changed <= allowed, f"changed: {sorted(changed - allowed)}"
    drafts = [name for name in after if name.endswith(".part") and name not in before]
    assert not drafts, f"drafts are left: {drafts}"
    for name in changed & after.keys():
        for part in attack.never:
            assert part.encode() not in after[name], f"{part!r} is in {root / name}"


def read_files(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def restore(root: Path, files: Mapping[str, bytes]) -> None:
    """Give the files of the project the content that they had; others stay as they are."""
    for name, data in files.items():
        path = root / name
        if path.is_dir():
            path.rmdir()
        elif path.is_symlink() or (path.exists() and not path.is_file()):
            path.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _matches(name: str, pattern: str) -> bool:
    folder, _, rest = pattern.partition("**")
    return name.startswith(folder) if rest == "" and "**" in pattern else name == pattern
