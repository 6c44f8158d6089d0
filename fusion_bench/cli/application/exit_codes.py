"""Exit codes: each means one thing in every command; ``docs/exit-codes.md`` has the table."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    REGRESSION = 1
    FAILED = 2
    INCONCLUSIVE = 3
    DEGRADED = 4
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    TERMINATED = 143


MEANINGS = {
    ExitCode.DONE: "done or passed",
    ExitCode.REGRESSION: (
        "the gate found a drop, its self-test a wrong error rate, or lint a warning"
    ),
    ExitCode.FAILED: "could not do it",
    ExitCode.INCONCLUSIVE: "inconclusive, or unjudged documents decide, and this blocks",
    ExitCode.DEGRADED: "done but degraded",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.TERMINATED: "terminated",
}


#: The codes that any command may end with.
COMMON = frozenset({ExitCode.DONE, ExitCode.FAILED, ExitCode.INTERRUPTED, ExitCode.TERMINATED})


def describe_exit_codes(*special: ExitCode) -> str:
    """The codes of a command with their meanings, for its help.

    Args:
        special: Its codes beside those of every command; all by default.
    """
    codes = [code for code in MEANINGS if not special or code in COMMON.union(special)]
    listed = ", ".join(f"{code.value} {MEANINGS[code]}" for code in codes)
    return f"Exit codes: {listed}."
