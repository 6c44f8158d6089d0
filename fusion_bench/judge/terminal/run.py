"""A sitting at the terminal that the process runs in."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from rich.console import Console

from fusion_bench.errors import ConfigError
from fusion_bench.judge.files.judgment import require_keys
from fusion_bench.judge.judge_task import JudgeTask
from fusion_bench.judge.terminal.judge_loop import JudgeLoop
from fusion_bench.judge.terminal.keyboard import open_keyboard
from fusion_bench.judge.terminal.session import Session


def require_terminal() -> None:
    """Raise where nobody can press a key or see a document.

    Raises:
        ConfigError: Standard input or output is no terminal.
    """
    for name, stream in (("input", sys.stdin), ("output", sys.stdout)):
        if not stream.isatty():
            raise ConfigError(
                f"standard {name} is no terminal: run this in one, or judge in a spreadsheet with "
                "--export FILE and --import FILE"
            )


def judge_in_terminal(
    task: JudgeTask, queries: Mapping[str, str], documents: Mapping[str, str]
) -> Session:
    """Judge until nothing is left, or the judge quits.

    Args:
        task: What to judge.
        queries: Query id → text.
        documents: Document id → text.

    Returns:
        What was done in this sitting; the judge's file has it already.

    Raises:
        ConfigError: A grade of the scale has no key.
        FusionBenchError: The judge's file cannot be written, or another process has it.
    """
    require_keys(task.greatest)
    session = Session(task)
    console = Console(highlight=False)
    keyboard = open_keyboard(sys.stdin.fileno())
    with task.file.lock(), keyboard as keys, console.screen() as screen:
        JudgeLoop(session, queries, documents, console, screen, keys).run()
    return session
