"""Standard streams that are closed, full, or read by nobody."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks.fork_server import ForkServer, Stream
from tests.attacks.project import EXPERIMENT, GATE
from tests.attacks.runner import LIMIT, child_environment
from tests.tiny import edit

ABSENT = ("eval", "absent.yaml")
LIST = ("dataset", "list")
NO_SPACE = "standard output: No space left on device"
#: Command, standard output, standard error, exit code, what standard error says.
CASES: list[tuple[tuple[str, ...], Stream, Stream, int, str]] = [
    (GATE, "closed", "closed", 1, ""),
    (GATE, "full", "file", 2, NO_SPACE),
    (GATE, "file", "full", 1, ""),
    ((*GATE, "--json"), "gone", "file", 141, ""),
    (LIST, "closed", "file", 0, ""),
    (LIST, "full", "full", 2, ""),
    (LIST, "file", "closed", 0, ""),
    (LIST, "file", "full", 0, ""),
    (LIST, "file", "gone", 0, ""),
    ((*LIST, "--json"), "full", "file", 2, NO_SPACE),
    ((*LIST, "--json"), "gone", "file", 141, ""),
    (ABSENT, "closed", "file", 2, "absent.yaml: no such file"),
    (ABSENT, "file", "closed", 2, ""),
    (ABSENT, "file", "full", 2, ""),
    (ABSENT, "file", "gone", 2, ""),
    (ABSENT, "closed", "closed", 2, ""),
    ((*ABSENT, "--json"), "closed", "file", 2, ""),
    ((*ABSENT, "--json"), "full", "file", 2, '"file": "absent.yaml"'),
    (("--help",), "closed", "file", 0, ""),
    (("--help",), "full", "file", 2, NO_SPACE),
    (("--help",), "gone", "file", 141, ""),
    (("gate", "--help"), "closed", "closed", 0, ""),
    (("--version",), "full", "file", 2, NO_SPACE),
    (("methods", "--json"), "gone", "file", 141, ""),
    (("eval", "--absent"), "file", "full", 2, ""),
    (("eval", "--absent"), "closed", "file", 2, "No such option: --absent"),
]


@pytest.fixture
def regressed(project: Path) -> Path:
    edit(project, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    return project


def test_the_exit_code_is_right_and_no_traceback_is_printed(
    regressed: Path, server: ForkServer
) -> None:
    for arguments, out, err, code, says in CASES:
        outcome = server.run(arguments, regressed, out=out, err=err)
        about = (arguments, out, err, outcome)
        assert outcome.code == code, about
        assert says in outcome.err, about
        assert bool(says) == bool(outcome.err), about
        assert "Traceback" not in outcome.err, about


@pytest.mark.parametrize(("streams", "code"), [(">&- 2>&- <&-", 0), (">/dev/full", 2)])
def test_the_same_from_a_shell(streams: str, code: int) -> None:
    """Python itself finds its streams closed as it starts."""
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m fusion_bench --version {streams}', sys.executable],
        env=child_environment(),
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, b"")
    assert done.stderr.decode() == ("" if code == 0 else f"error: {NO_SPACE}\n")
