"""Files before they are records: their bytes, plain or gzip; their layout; their columns."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.document_rows import COLUMN_NAMES, is_blank
from fusion_bench.data.grouped_rows import CategoricalIds
from fusion_bench.data.read_options import Order
from fusion_bench.errors import DataError, UnknownNameError
from fusion_bench.util.files import IrregularFileError, open_regular

#: The first bytes of a gzip file.
GZIP = b"\x1f\x8b"
#: Most bytes that any gzip file may stand for, and how many times its own size it may stand for
#: beyond them. Lists of ranks and texts pack to between a third and a twentieth.
MOST_UNPACKED = 1 << 28
MOST_RATIO = 100


def format_suffix(path: Path) -> str:
    """The suffix that names the format, in small letters; ``.gz`` names none."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return suffixes[-1] if suffixes else ""


def strip_suffixes(path: Path) -> str:
    """The file's name without ``.gz`` and the suffix of its format."""
    name = path.name
    for suffix in reversed(path.suffixes):
        if suffix.lower() in {".gz", format_suffix(path)}:
            name = name.removesuffix(suffix)
    return name


def read_head(path: Path, size: int = 1 << 16, encoding: str | None = None) -> str:
    """The whole lines among a file's first bytes, unpacked; empty where there are none.

    A file that cannot be read or decoded has none: reading all of it says why.
    """
    try:
        with open_regular(path) as file:
            is_packed = file.peek(len(GZIP))[: len(GZIP)] == GZIP
            data = gzip.GzipFile(fileobj=file).read(size) if is_packed else file.read(size)
        is_cut = len(data) == size
        data, name = _split_mark(data, encoding)
        text = codecs.getincrementaldecoder(name)().decode(data, not is_cut)
        return text[: text.rfind("\n") + 1] if is_cut else text
    except (OSError, EOFError, LookupError, ValueError, zlib.error):
        return ""


def read_text(path: Path, encoding: str | None = None) -> str:
    """The text of a file; arguments and errors as for :func:`decode_text`."""
    return decode_text(path, read_bytes(path), encoding)


#: What a file may begin with → its encoding. UTF-32 goes first: it may begin as UTF-16 does.
BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def _split_mark(data: bytes, encoding: str | None = None) -> tuple[bytes, str]:
    """The bytes behind a byte order mark, and the encoding that it states."""
    for mark, name in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :], name
    return data, encoding or "utf-8"


def decode_text(path: Path, data: bytes, encoding: str | None = None) -> str:
    """The text that a file's bytes are.

    Args:
        path: The file, for messages.
        data: Its bytes.
        encoding: Name of their encoding; a byte order mark goes before it, and UTF-8 is the
            default.

    Raises:
        DataError: They are of another encoding, hold NUL, or have a byte order mark at the
            beginning of a later line, as two files that were joined do.
    """
    data, name = _split_mark(data, encoding)
    try:
        text = data.decode(name)
    except LookupError:
        raise DataError(
            f"{path}: unknown encoding {name!r}: give the name of one, such as cp1252"
        ) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        at = error.start - data.rfind(b"\n", 0, error.start)
        raise DataError(
            f"{path}:{line}: not {name.upper()} text (byte {at} of the line): "
            f"{_propose_encoding(data)}"
        ) from None
    if "\0" in text:
        refuse_text(path, text, "\0", _propose_encoding(data))
    refuse_text(path, text, f"\n{BYTE_ORDER_MARK}", JOINED)
    return text


def _propose_encoding(data: bytes) -> str:
    """What to do about bytes that are no UTF-8: the first encoding that gives a text, if any."""
    wide = "utf-16-le" if data[1::2].count(0) > data[::2].count(0) else "utf-16-be"
    name = wide if b"\0" in data else "cp1252"
    with suppress(UnicodeDecodeError):
        if "\0" not in data.decode(name):
            return f"save as CSV UTF-8, or give --encoding {name} (or the encoding that it has)"
    return "a plain or gzip text file is needed"


#: How a byte order mark reads where it is part of the text, and what to do about it.
BYTE_ORDER_MARK: Final = "\ufeff"
JOINED: Final = "a byte order mark inside the file, as if two files were joined: delete it"


def refuse_text(path: Path, text: str, refused: str, rule: str) -> None:
    """Refuse a text that holds a character, or several in a row.

    Raises:
        DataError: It does; names the line.
    """
    at = text.find(refused)
    if at >= 0:
        line = text.count("\n", 0, at + len(refused)) + 1
        raise DataError(f"{path}:{line}: holds the character U+{ord(refused[-1]):04X}: {rule}")


def read_bytes(path: Path, *, most_unpacked: int = MOST_UNPACKED) -> bytes:
    """The bytes of a file, unpacked where its first ones say gzip.

    Args:
        path: The file.
        most_unpacked: Bytes that any gzip file may stand for; a larger file may stand for
            ``MOST_RATIO`` times its own size.

    Raises:
        DataError: It cannot be opened or unpacked, or unpacks to too much.
    """
    with name_read_errors(path), open_regular(path) as file:
        if file.peek(len(GZIP))[: len(GZIP)] != GZIP:
            return file.read()
        most = max(most_unpacked, MOST_RATIO * os.fstat(file.fileno()).st_size)
        data = gzip.GzipFile(fileobj=file).read(most + 1)
    if len(data) > most:
        raise DataError(
            f"{path}: unpacks to more than {most:,} bytes, over {MOST_RATIO} times its size: "
            "is it the right file? If so, unpack it with gunzip"
        )
    return data


@contextmanager
def name_read_errors(path: Path) -> Iterator[None]:
    """Say which file cannot be read, and why.

    Raises:
        DataError: It cannot be opened or unpacked.
    """
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file: check the path") from None
    except IrregularFileError as error:
        raise DataError(f"{path}: {error}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file ({error}): copy it again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except DataError:
        raise
    except ValueError as error:  # a path with a null byte
        raise DataError(f"{path}: cannot be read: {error}") from None


def read_csv_rows(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, int, list[str]]]:
    """The numbers of the first and the last line of each row, and its cells.

    Raises:
        DataError: The text is not a table of cells.
    """
    table = csv.reader(
        io.StringIO(text), delimiter=delimiter, strict=True, skipinitialspace=delimiter == " "
    )
    last = 0
    try:
        for cells in table:
            first, last = last + 1, table.line_num
            yield first, last, cells
    except csv.Error as error:
        is_split = "new-line" in str(error)
        reason = "a line ends with CR alone: convert the line ends to LF" if is_split else error
        raise DataError(f"{path}:{last + 1}: not a table of cells: {reason}") from None


#: What a column holds (query, document, score, grade, rank) → its name in the file.
ColumnNames: TypeAlias = Mapping[str, str]
NO_COLUMNS: Final[ColumnNames] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class FileLayout:
    """What a ``dataset.yaml`` says of a file that its suffix and header do not say.

    Attributes:
        format: Name of the format; by default the suffix and the contents decide.
        columns: What a column holds → its name in the file; by default the usual names.
        encoding: Of a text file; by default UTF-8, or what its first bytes say.
        requests: Queries of the lists that name none, in their order.
    """

    format: str | None = None
    columns: ColumnNames = field(default_factory=dict)
    encoding: str | None = None
    requests: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for role in self.columns:
            if role not in COLUMN_NAMES:
                raise UnknownNameError("column", role, COLUMN_NAMES, where="columns")

    @property
    def key(self) -> list[object]:
        """Plain values that tell one layout from another, for the key of a cache."""
        return [self.format, sorted(self.columns.items()), self.encoding, list(self.requests)]


#: The suffix names the format and the header the columns.
DEFAULT_LAYOUT: Final = FileLayout()


Kind: TypeAlias = Literal["run", "qrels"]


@dataclass(frozen=True)
class ArrowStrings:
    """Ids that are not encoded yet, because those of several files are encoded together.

    Attributes:
        chunks: One Arrow array of type ``large_string``; none once it has been taken out.
    """

    chunks: list[Any]

    def __len__(self) -> int:
        return len(self.chunks[0])


@dataclass(frozen=True)
class RawTable:
    """One file's rows. Numbers may be text still: whoever makes records of them parses it.

    Attributes:
        queries: Query ids.
        documents: Document ids.
        values: Scores or grades, as text or numbers; None for a run of which only ranks are known.
        ranks: The rank column, if it was asked for or stands in for the scores.
        lines: 1-based line (or record) of each row; or a text that follows the path in a message,
            such as ``": query 'q1'"``.
        bare: Query whose list may be no ranking, but any object of numbers → where it stands.
        lower_is_better: The values are distances: the smallest stands first.
        notes: What was read in another way than a reader of the file may expect; each a sentence.
    """

    queries: Sequence[str] | CategoricalIds
    documents: Sequence[str] | CategoricalIds | ArrowStrings
    values: Sequence[str | float] | NDArray[np.number] | None
    ranks: Sequence[str | int] | NDArray[np.number] | None
    lines: Sequence[int | str]
    bare: Mapping[str, str] = field(default_factory=dict)
    lower_is_better: bool = False
    notes: tuple[str, ...] = ()

    def holds_distances(self, order: Order | None) -> bool:
        """Whether the smallest value stands first.

        Args:
            order: As it is stated of the file; None = nothing is.
        """
        return self.lower_is_better if order is None else order == "lower"


def tabulate(
    column: Mapping[str, Sequence[Any]], lines: Sequence[int | str], *, has_ranks: bool = True
) -> RawTable:
    """The table of ``query``, ``document`` and perhaps ``value`` and ``rank``.

    Args:
        column: What it holds → its cells.
        lines: As :class:`RawTable` has them.
        has_ranks: Whether ranks are needed beside values.
    """
    needs_ranks = has_ranks or "value" not in column
    ranks = column.get("rank") if needs_ranks else None
    return RawTable(column["query"], column["document"], column.get("value"), ranks, lines)


def drop_unjudged(table: RawTable, where: str) -> RawTable:
    """The judgments without those whose grade is blank, which are unjudged; a note counts them.

    Args:
        table: Judgments with lists of ids and grades.
        where: Prefix of a message.

    Raises:
        DataError: All grades are blank.
    """
    grades = () if table.values is None else table.values
    is_judged = [not is_blank(grade) for grade in grades]
    blank = is_judged.count(False)
    if not blank:
        return table
    if not any(is_judged):
        raise DataError(f"{where}: each grade is blank: at least one judgment is needed")
    columns = ("queries", "documents", "values", "lines")
    kept: dict[str, Any] = {
        name: list(compress(getattr(table, name), is_judged)) for name in columns
    }
    note = f"Rows without a grade are left out as unjudged: {blank} of {len(is_judged)}."
    return replace(table, **kept, ranks=None, notes=(*table.notes, note))
