"""The lines of a TREC file: which are rows, which are comments, and where a tag ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from fusion_bench.errors import DataError
from fusion_bench.io.formats._fixed_columns import COLUMNS, fits_columns
from fusion_bench.io.raw_table import Kind
from fusion_bench.util.decimal_numbers import is_decimal

#: What a comment starts with.
COMMENT: Final = "#"


def split_trec_lines(path: Path, kind: Kind, text: str) -> Iterator[tuple[int, list[str]]]:
    """The number and the cells of each row; blank lines and comments are skipped.

    A line that starts with ``#`` is a comment. The tag of a run may hold blanks: it is whatever
    follows the first five columns.

    Args:
        path: For messages.
        kind: What the file holds.
        text: The file's text.

    Raises:
        DataError: A line starts with ``#`` and would be a row all the same, so that nobody can
            tell which of the two it is.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        cells = line.split()
        if not cells:
            continue
        if not cells[0].startswith(COMMENT):
            yield number, _join_tag(cells, kind)
        elif fits_columns(_join_tag(cells, kind), kind):
            raise DataError(
                f"{path}:{number}: starts with '#' as a comment does, and has the columns of a "
                f"{kind}: delete the line, or, if the query id starts with '#', write a .tsv file "
                "with a header"
            )


def _join_tag(cells: list[str], kind: Kind) -> list[str]:
    """The cells with all words of the tag in one.

    A number where the tag begins speaks for an id with a blank, which moves every column behind
    it: then the cells stay as they are, too many.
    """
    width = len(COLUMNS[kind])
    if kind != "run" or len(cells) <= width or is_decimal(cells[width - 1]):
        return cells
    joined = [*cells[: width - 1], " ".join(cells[width - 1 :])]
    return joined if fits_columns(joined, kind) else cells


def looks_like_trec(path: Path, kind: Kind, lines: Sequence[str]) -> bool:
    """Whether the first lines of a file are rows of a TREC file, or of an MS MARCO run.

    Args:
        path: For messages.
        kind: What the file should hold.
        lines: Its first lines.
    """
    rows = [cells for _, cells in split_trec_lines(path, kind, "\n".join(lines))]
    return bool(rows) and all(fits_columns(cells, kind) for cells in rows)
