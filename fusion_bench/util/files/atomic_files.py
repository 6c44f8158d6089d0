"""Files written whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.util.files.drafts import UNFINISHED, make_draft
from fusion_bench.util.files.regular_files import check_regular


def require_folder(folder: Path, option: str = "--out") -> Path:
    """The folder itself, checked before the work begins.

    Args:
        folder: Where to write.
        option: What names it, for messages.

    Raises:
        ConfigError: A file is in the way.
    """
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise ConfigError(f"{option} {folder}: {path} is a file: name a folder")
    return folder


def write_atomic(path: Path, data: bytes) -> Path:
    """Write a file under another name and move it into place; its folder is made if need be.

    Raises:
        FusionBenchError: The place cannot be written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        check_regular(path)
        return replace_file(path, data)
    except OSError as error:
        raise make_write_error(path, error) from error


def append_whole(path: Path, data: bytes) -> None:
    """Append data that outlive a power cut to a file, all or none; it is made, as is its folder.

    Raises:
        FusionBenchError: The file cannot be written to; it is as it was.
    """
    size = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            size = file.tell()
            _write_through(file, data)
    except OSError as error:
        if size is not None:
            with suppress(OSError):
                os.truncate(path, size)
        raise make_write_error(path, error) from error


def make_write_error(path: Path, error: OSError) -> FusionBenchError:
    """What to raise where a file, or one below a folder, cannot be written."""
    is_below = isinstance(error.filename, str) and Path(error.filename).is_relative_to(path)
    place = error.filename if is_below else path
    return FusionBenchError(f"{place}: cannot be written: {error.strerror or error}")


def replace_file(path: Path, data: bytes) -> Path:
    """The same, for callers with their own words: raises OSError."""
    with open_atomic(path) as file:
        _write_through(file, data)
    return path


def replace_files(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files that belong together; raises OSError.

    The first is the record of the set. It is absent while the others are replaced, so where it is
    there, all files belong to it. All are written whole before any is replaced. Where one cannot be
    replaced, those that were come back, the record last.

    Args:
        folder: Where to; it is there.
        contents: File name → data.

    Returns:
        Their paths, in order.
    """
    paths = [folder / name for name in contents]
    for path in paths:
        check_regular(path)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with (
        _name_file(folder),
        make_draft(folder, is_folder=True) as draft,
        make_draft(folder, is_folder=True) as previous,
    ):
        for path, data in zip(paths, contents.values(), strict=True):
            with _name_file(path), (draft / path.name).open("xb") as file:
                _write_through(file, data)
        _replace_set(paths, draft, previous)
    return paths


def _replace_set(paths: Sequence[Path], draft: Path, previous: Path) -> None:
    """Move the files of a draft into place; raises OSError, with the old files back in place.

    Args:
        paths: The files, the record first.
        draft: Folder with the new files.
        previous: Empty folder, for a second name of each old file.
    """
    record, *others = paths
    replaced: list[tuple[Path, Path | None]] = []
    try:
        replaced.append((record, _keep_old_file(record, previous)))
        record.unlink(missing_ok=True)
        for path in others:
            old = _keep_old_file(path, previous)
            with _name_file(path):
                os.replace(draft / path.name, path)  # noqa: PTH105 - atomic, as it promises
            replaced.append((path, old))
        with _name_file(record):
            os.replace(draft / record.name, record)  # noqa: PTH105
    except OSError:
        for path, old in reversed(replaced):
            if old is None:
                path.unlink(missing_ok=True)
            else:
                os.replace(old, path)  # noqa: PTH105
        raise


def _keep_old_file(path: Path, folder: Path) -> Path | None:
    """A second name of a file, or a copy where there are no second names; None = no such file."""
    old = folder / path.name
    try:
        os.link(path, old)
    except FileNotFoundError:
        return None
    except OSError:
        shutil.copyfile(path, old)
    return old


@contextmanager
def open_atomic(path: Path) -> Iterator[IO[bytes]]:
    """A file under another name, moved into place when all went well; raises OSError."""
    with _name_file(path), make_draft(path.parent) as draft:
        with draft.open("wb") as file:
            yield file
        os.replace(draft, path)  # noqa: PTH105


@contextmanager
def _name_file(path: Path) -> Iterator[None]:
    """Name the file in an error, and not its draft."""
    try:
        yield
    except OSError as error:
        if error.filename is None or UNFINISHED in str(error.filename):
            error.filename = str(path)
        raise


def _write_through(file: IO[bytes], data: bytes) -> None:
    """Write data that outlive a power cut."""
    file.write(data)
    file.flush()
    os.fsync(file.fileno())
