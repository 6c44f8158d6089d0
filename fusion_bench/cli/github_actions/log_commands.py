"""Lines of a log of GitHub Actions that are no commands, although the runner obeys some lines."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Final

#: What the runner takes for a command: ``::error::`` where a line begins, ``##[error]`` anywhere.
COMMAND: Final = re.compile(r"^(?P<blank>\s*):(?=:)|#(?=#\[)", re.MULTILINE)


def is_on_github(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this is a job of GitHub Actions."""
    return environment.get("GITHUB_ACTIONS") == "true"


def disarm_commands(text: str) -> str:
    r"""A text whose lines are no commands in a job's log: such a name begins with ``\x3a``.

    Args:
        text: Whole lines.
    """
    if not is_on_github():
        return text
    return COMMAND.sub(lambda match: f"{match['blank'] or ''}\\x{ord(match[0][-1]):x}", text)


class LogOutput:
    """Standard output, in which a name from anywhere is no command of a job's log."""

    def __getattr__(self, name: str) -> object:
        """Whatever else standard output has."""
        return getattr(sys.stdout, name)

    def write(self, text: str) -> int:
        """Write lines."""
        return sys.stdout.write(disarm_commands(text))
