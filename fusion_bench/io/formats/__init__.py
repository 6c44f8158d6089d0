"""File formats: one module each; a suffix, ``format:`` or the first lines choose one."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Final

from fusion_bench.config.plugins import distribution_of
from fusion_bench.errors import DataError, UnknownNameError
from fusion_bench.io.formats._base import FORMATS, Format, register_format
from fusion_bench.io.formats.ranklib import looks_like_ranklib
from fusion_bench.io.formats.text_tables import looks_like_trec
from fusion_bench.io.raw_files import (
    DEFAULT_LAYOUT,
    FileLayout,
    Kind,
    RawTable,
    format_suffix,
    read_head,
    read_text,
    strip_suffixes,
)

__all__ = [
    "FORMATS",
    "Format",
    "find_distribution",
    "read_raw_table",
    "register_format",
    "source_name",
]

#: Suffixes of what only the library that wrote it reads.
PACKED: Final = frozenset({".lz4", ".npz", ".npy", ".lst", ".pkl", ".pickle", ".pt"})
#: What a folder holds: one answer of a search engine a file.
FOLDER_FORMAT: Final = "json"


def read_raw_table(
    path: Path, kind: Kind, *, has_ranks: bool = False, layout: FileLayout = DEFAULT_LAYOUT
) -> RawTable:
    """Read a run or qrels file.

    The layout names its format, or else its suffix. A file with no such suffix is a TREC file if
    its first lines look like one. A folder holds JSON.

    Args:
        path: The file, or a folder of JSON files.
        kind: What it holds.
        has_ranks: Whether the rank column is needed.
        layout: Its format and the names of its columns.

    Raises:
        DataError: No such file, an empty one, or a malformed line.
        UnknownNameError: No format of that name or suffix.
    """
    file_format = _find_format(path, layout) or _guess_format(path, kind, layout.encoding)
    is_text = layout.format is None and format_suffix(path) == ".txt"
    if is_text and looks_like_ranklib(read_head(path, encoding=layout.encoding).split("\n")):
        file_format = FORMATS.find_plugin("ranklib")
    stated = {"encoding": layout.encoding, "requests": layout.requests}
    options = {option: value for option, value in stated.items() if value}
    known = signature(file_format.read_table).parameters if options else {}
    for option in options:
        if option not in known:
            raise DataError(f"{path}: {option}: this format has none: delete the option")
    table = file_format.read_table(
        path, kind, has_ranks=has_ranks, columns=layout.columns, **options
    )
    if len(table.queries) == 0:
        raise DataError(f"{path}: the file is empty: at least one row is needed")
    return table if layout.format is None else replace(table, bare={})


def find_distribution(path: Path, layout: FileLayout = DEFAULT_LAYOUT) -> str | None:
    """``name==version`` of the distribution that reads a file; None = this one, or none."""
    return distribution_of(_find_format(path, layout))


def source_name(path: Path) -> str:
    """What a source is called by default: its file's name without the suffix of a format."""
    if _find_format(path, DEFAULT_LAYOUT) is None or _is_folder(path):
        return path.name.removesuffix(".gz")
    return strip_suffixes(path)


def _find_format(path: Path, layout: FileLayout) -> Format | None:
    """The format that the layout or the suffix names; a built-in one wins over another's."""
    if layout.format is not None:
        return FORMATS.find_plugin(layout.format)
    suffix = format_suffix(path)
    for load_formats in (FORMATS.load_built_in, FORMATS.load_all):
        for file_format in load_formats().values():
            if suffix in file_format.suffixes:
                return file_format
    return FORMATS.find_plugin(FOLDER_FORMAT) if _is_folder(path) else None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that no file can have
        return False


def _guess_format(path: Path, kind: Kind, encoding: str | None) -> Format:
    """TREC, if the first lines of a file without a known suffix look like it.

    Raises:
        DataError: It cannot be read.
        UnknownNameError: They do not.
    """
    head = read_head(path, encoding=encoding)
    if not head.strip():
        read_text(path, encoding)  # says what is wrong with it
    elif looks_like_trec(path, kind, head.split("\n")):
        return FORMATS.find_plugin("trec")
    elif looks_like_ranklib(head.split("\n")):
        return FORMATS.find_plugin("ranklib")
    if format_suffix(path) in PACKED:
        raise DataError(
            f"{path}: a packed file is not read: save it as JSON from the library that wrote it, "
            'as in ranx: run.save("run.json")'
        )
    suffixes = {known for other in FORMATS.load_all().values() for known in other.suffixes}
    raise UnknownNameError(
        "file suffix",
        format_suffix(path),
        suffixes,
        where=str(path),
        remedy="rename the file, or write 'format: NAME' beside its path in dataset.yaml "
        f"({', '.join(FORMATS.load_all())})",
    )
