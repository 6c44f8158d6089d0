"""Whole commands, run one after the other in a process of their own."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from importlib import import_module
from pathlib import Path

from fusion_bench.errors import FusionBenchError
from fusion_bench.util.processes.worker_process import WorkerProcess

#: The module whose ``main`` runs a command; the gate, which lies below, names it only.
COMMAND_LINE = "fusion_bench.cli"


def run_commands(
    commands: Sequence[tuple[Path, Sequence[str]]], process: WorkerProcess
) -> list[int]:
    """Run ``fusion-bench`` with the arguments of each command, in its folder.

    Args:
        commands: The folder and the arguments of each.
        process: Runs them; the first one takes a second longer, for what is imported.

    Returns:
        The exit codes.

    Raises:
        FusionBenchError: The process ended before the last command.
    """
    codes: list[int] = []
    for folder, arguments in commands:
        try:
            codes.append(process.submit(_run_command, str(folder), list(arguments)).result())
        except BrokenExecutor as error:
            raise FusionBenchError(
                f"self-test: {len(codes)} of {len(commands)} commands ended, then: {error}"
            ) from None
    return codes


def _run_command(folder: str, arguments: list[str]) -> int:
    """The exit code of one command, whose output is dropped."""
    os.chdir(folder)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = import_module(COMMAND_LINE).main(arguments)
        except SystemExit as end:
            code = end.code
    return int(code or 0)
