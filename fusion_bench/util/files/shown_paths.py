"""Paths as reports show them: they work where the command ran, and name no machine."""

from __future__ import annotations

from pathlib import Path

from fusion_bench.util.files.real_paths import resolve_path


def show_path(path: Path) -> str:
    """A path relative to the working directory, with ``/``.

    A relative path stays as it is given. Of an absolute one beyond the working directory only the
    name is left, as its folders may name a user or a machine.
    """
    if not path.is_absolute():
        return path.as_posix()
    place, folder = resolve_path(path), resolve_path(Path())
    return place.relative_to(folder).as_posix() if place.is_relative_to(folder) else path.name
