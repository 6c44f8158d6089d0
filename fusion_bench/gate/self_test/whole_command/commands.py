"""Whole commands, run one after the other in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from fusion_bench.errors import FusionBenchError

#: Reads [folder, arguments] a line and prints the exit code of each command.
DRIVER = """
import contextlib, io, json, os, sys
from fusion_bench.cli import main
for line in sys.stdin:
    folder, arguments = json.loads(line)
    os.chdir(folder)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code
    print(code or 0, flush=True)
"""


def run_commands(commands: Sequence[tuple[Path, Sequence[str]]]) -> list[int]:
    """Run ``fusion-bench`` with the arguments of each command, in its folder.

    Returns:
        The exit codes.

    Raises:
        FusionBenchError: The process ended before the last command.
    """
    lines = "".join(f"{json.dumps([str(folder), list(given)])}\n" for folder, given in commands)
    done = subprocess.run(  # noqa: S603 - this package, by this interpreter
        [sys.executable, "-c", DRIVER], input=lines, capture_output=True, text=True, check=False
    )
    codes = [int(line) for line in done.stdout.split()]
    if len(codes) != len(commands):
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise FusionBenchError(
            f"self-test: {len(codes)} of {len(commands)} commands ended, then: {last}"
        )
    return codes
