"""Exit codes of commands, one a meaning."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of all commands."""

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
        "the gate found a drop, its self-test a wrong answer or rate, or lint a warning; a "
        "campaign keeps its baseline"
    ),
    ExitCode.FAILED: "could not do it",
    ExitCode.INCONCLUSIVE: (
        "inconclusive, or unjudged documents decide, and this blocks; a campaign is closed"
    ),
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


class CommandInterruptedError(Exception):
    """Ctrl-C ended a command before it had a result."""
