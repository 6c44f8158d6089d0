"""Damage to the files of a project, as values that a table of cases can hold."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from tests import tiny

#: Damages the project in a folder.
Edit: TypeAlias = Callable[[Path], None]


def replaced(name: str, old: str, new: str) -> Edit:
    return lambda root: tiny.edit(root, name, old, new)


def text(name: str, content: str | bytes) -> Edit:
    data = content.encode() if isinstance(content, str) else content

    def spoil(root: Path) -> None:
        (root / name).write_bytes(data)

    return spoil


def gone(name: str) -> Edit:
    return lambda root: (root / name).unlink()


def folder(name: str) -> Edit:
    def spoil(root: Path) -> None:
        (root / name).unlink(missing_ok=True)
        (root / name).mkdir()

    return spoil


def pipe(name: str) -> Edit:
    """Put a named pipe, into which nobody writes, in the place of a file."""

    def spoil(root: Path) -> None:
        (root / name).unlink(missing_ok=True)
        os.mkfifo(root / name)

    return spoil


def unix_socket(name: str) -> Edit:
    """Put a socket in the place of a file."""

    def spoil(root: Path) -> None:
        (root / name).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as made:
            before = Path.cwd()
            os.chdir((root / name).parent)  # a socket's path has at most 107 bytes
            try:
                made.bind(Path(name).name)
            finally:
                os.chdir(before)

    return spoil


def link(name: str, target: str) -> Edit:
    def spoil(root: Path) -> None:
        (root / name).unlink(missing_ok=True)
        (root / name).symlink_to(target)

    return spoil


def nothing(root: Path) -> None:
    """What is wrong is in the arguments."""


def and_then(*edits: Edit) -> Edit:
    def spoil(root: Path) -> None:
        for edit in edits:
            edit(root)

    return spoil
