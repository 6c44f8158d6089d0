"""The command that asks for what to judge first, as pages print it."""

from __future__ import annotations

from shlex import join
from typing import Final

#: Documents to judge at a time.
BUDGET: Final = 50
#: The suffixes of an experiment's file.
SUFFIXES: Final = (".yaml", ".yml")


def format_judge_line(source: str, candidate: str | None = None) -> str:
    """``fusion-bench judge mine.yaml --candidate NAME --next 50``.

    Args:
        source: Name of the experiment's file; what is no such name becomes ``EXPERIMENT``.
        candidate: The system whose difference from the baseline is to be decided; None = the best.
    """
    experiment = source if source.endswith(SUFFIXES) else "EXPERIMENT"
    pair = () if candidate is None else ("--candidate", candidate)
    return join(("fusion-bench", "judge", experiment, *pair, "--next", str(BUDGET)))


def format_pool_line(source: str, system: str) -> str:
    """``fusion-bench judge mine.yaml --system NAME --order pool``.

    Args:
        source: As for :func:`format_judge_line`.
        system: The system whose documents are to be judged.
    """
    experiment = source if source.endswith(SUFFIXES) else "EXPERIMENT"
    words = ("fusion-bench", "judge", experiment, "--system", system, "--order", "pool")
    return join(words)
