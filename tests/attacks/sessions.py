"""The processes of a session on Linux: a command that began one, and all that it started."""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.attacks.runner import child_environment, restore_signals


def start_session(arguments: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """Start Python in a session of its own, in a folder; what it prints is read from pipes.

    Args:
        arguments: Such as ``-m`` and a module.
        folder: Where it runs.
    """
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=child_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=restore_signals,
    )


def list_session(leader: int) -> list[int]:
    """The processes of a session that have not ended, without its leader."""
    members = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != leader:
            with suppress(OSError):  # it has ended meanwhile
                # The name stands in parentheses and may hold anything; then state, parent, group.
                state, _, _, session, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(session) == leader and state != "Z":
                    members.append(int(folder.name))
    return members
