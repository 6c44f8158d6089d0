"""Configuration files written whole, never over others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from fusion_bench.errors import ConfigError
from fusion_bench.io.outputs import check_output, write_output
from fusion_bench.util.files.atomic_files import require_folder
from fusion_bench.util.files.regular_files import read_regular


def write_files(files: Mapping[str, str], folder: Path, *, force: bool = False) -> list[Path]:
    """Write files into a folder; all are checked before the first is written.

    Args:
        files: Name → text.
        folder: Where to; created if missing.
        force: Replace files that are there and differ.

    Returns:
        Their paths.

    Raises:
        ConfigError: A file is there, or a name leads out of the folder.
        FusionBenchError: The folder cannot be written to.
    """
    contents = {_place(name, folder): text.encode() for name, text in files.items()}
    for path, data in contents.items():
        require_folder(path.parent)
        if path.is_dir():
            raise ConfigError(f"--out {folder}: {path} is a folder: choose another")
        if not force and path.exists() and read_regular(path) != data:
            raise ConfigError(
                f"--out {folder}: {path} is there and differs: choose another folder, or add "
                "--force to replace it"
            )
        check_output(path)
    return [write_output(path, data) for path, data in contents.items()]


def _place(name: str, folder: Path) -> Path:
    """The path of a file in the folder; a dialect of somebody else may call it anything."""
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or "\\" in name or PurePosixPath(name).is_absolute():
        raise ConfigError(f"file {name!r} lies outside the folder: the dialect has to rename it")
    return folder.joinpath(*parts)
