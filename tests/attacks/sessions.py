"""The processes of a session on Linux: a command that began one, and all that it started."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


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
