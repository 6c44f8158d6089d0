"""A project with the files of a user, and commands that a shell runs in it.

A call of ``fusion-bench`` alone is made in this process: to start one of its own takes longer.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from tests.attacks.runner import run_here
from tests.docs.printed import ROOT

#: Files of the built-in collection → what the user calls them.
FILES = {
    "qrels.txt": "qrels.txt",
    "queries.jsonl": "queries.jsonl",
    "runs/bm25.trec.gz": "bm25.trec.gz",
    "runs/question.trec.gz": "dense.trec.gz",
}
#: Names of files that hold what is judged, retrieved or accepted: an agent reads them only.
PROTECTED = (
    *("qrels.txt", "queries.jsonl", "*.trec.gz", "dataset.yaml", "baselines/*.json"),
    *("looks.jsonl", "campaigns.jsonl"),
)
#: Of these an agent's commands may add lines at the end.
LEDGERS = frozenset({"looks.jsonl", "campaigns.jsonl"})
#: What a shell does something with; of comments it does nothing.
SYNTAX = re.compile(r"[|&;<>()$`\\*?\[~]")


class Step(NamedTuple):
    """A command that was run.

    Attributes:
        command: The shell's line.
        code: Its exit code.
        out: Standard output.
        err: Standard error.
    """

    command: str
    code: int = 0
    out: str = ""
    err: str = ""


def make_files(root: Path) -> Path:
    """Write the user's files, and ``fusion-bench`` for the shell, below a folder; return it."""
    for source, name in FILES.items():
        shutil.copy(ROOT / "datasets" / "referee" / source, root / name)
    program = root / ".bin" / "fusion-bench"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m fusion_bench "$@"\n')
    program.chmod(0o755)
    return root


def run(command: str, root: Path) -> Step:
    """Let the shell run a command in a project."""
    with patch.dict(os.environ, {"COLUMNS": "120"}):
        os.environ.pop("RAG_FUSION_V2_ENABLED", None)
        program, *arguments = shlex.split(command, comments=True)
        if program == "fusion-bench" and not SYNTAX.search(command):
            done = run_here(arguments, root)
            return Step(command, done.code, done.out, done.err)
        return _run_in_shell(command, root)


def _run_in_shell(command: str, root: Path) -> Step:
    path = f"{root / '.bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ("sh", "-c", command),
        cwd=root,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return Step(command, done.returncode, done.stdout, done.stderr)


def read_protected(root: Path) -> dict[str, bytes]:
    """Name → content of the files that an agent only reads; of the others a digest."""
    files = sorted({path for name in PROTECTED for path in root.rglob(name)})
    contents = {str(path.relative_to(root)): path.read_bytes() for path in files}
    return {
        name: data if Path(name).name in LEDGERS else hashlib.sha256(data).digest()
        for name, data in contents.items()
    }


def list_changed(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """Protected files that are gone or not as they were; a ledger may have grown."""
    return [
        name
        for name, data in before.items()
        if after.get(name) != data
        and not (Path(name).name in LEDGERS and after.get(name, b"").startswith(data))
    ]


class Projects:
    """Projects after the commands that came before the agent, each made once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._make = cache(self._make_project)

    def copy(self, given: tuple[str, ...], root: Path) -> Path:
        """A copy of the project for one agent."""
        return Path(shutil.copytree(self._make(given), root / "project", symlinks=True))

    def _make_project(self, given: tuple[str, ...]) -> Path:
        source = self._make(given[:-1]) if given else None
        root = self._folder / str(len(list(self._folder.iterdir())))
        if source is None:
            root.mkdir()
            return make_files(root)
        shutil.copytree(source, root)
        step = run(given[-1], root)
        assert step.code == 0, step
        return root
