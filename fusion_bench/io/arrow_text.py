"""Regular text by pyarrow: its columns parsed, and its ids numbered.

pyarrow splits on exactly one separator, knows no white space but that, and would take an empty
cell for a value. So the bytes are searched for whatever is irregular before it sees them; what is
found, or refused by pyarrow, goes to the plain reader of its format, which decides.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
from numpy.typing import NDArray

from fusion_bench.data.ids import CategoricalIds, IdBytes, IdVocabulary, encode_ids, sort_by_bytes
from fusion_bench.data.ordering import IntArray
from fusion_bench.io.raw_table import ArrowStrings, RawTable

BLANK, NEWLINE = b" \n"
#: Bytes that are searched at a time: they fit a core's cache.
BLOCK: Final = 1 << 17
#: What separates the columns of a line for Python, beyond what ASCII has.
UNICODE_BLANK: Final = re.compile("[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
#: Bytes of strings that an Arrow array with offsets of 32 bits can hold.
MAX_STRING_BYTES: Final = 2**31 - 1


def parse_regular_text(
    data: bytes, columns: Sequence[str], value: str, *, has_ranks: bool
) -> RawTable | None:
    """The rows of a text whose columns stand between single blanks.

    Args:
        data: The bytes of the text.
        columns: Name of each column; ``query`` and ``document`` are among them.
        value: Name of the column of values: ``score`` for numbers, ``grade`` for whole numbers.
        has_ranks: Whether to read the column ``rank``.

    Returns:
        None if it has to be read line by line.
    """
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    if not is_regular(data):
        return None
    kinds = {"query": pa.string(), "document": pa.string(), value: pa.string()}
    if value == "score":
        kinds[value] = pa.float64()
    if has_ranks:
        kinds["rank"] = pa.string()
    try:
        table = _parse_columns(data, columns, kinds)
        values = _read_floats(table[value]) if value == "score" else _read_integers(table[value])
        return RawTable(
            queries=_encode_column(table["query"]),
            documents=ArrowStrings([_combine_chunks(table["document"].chunks)]),
            values=values,
            ranks=_read_integers(table["rank"]) if has_ranks else None,
            lines=range(1, table.num_rows + 1),
        )
    except (pa.ArrowInvalid, ValueError, OverflowError):
        return None


def is_regular(data: bytes) -> bool:
    """Whether a text has no white space but single blanks and newlines between its cells."""
    if not data or data[0] <= BLANK or data[-1] == BLANK:
        return False
    codes = np.frombuffer(data, dtype=np.uint8)
    for at in range(0, len(codes), BLOCK):
        block = codes[at : at + BLOCK + 1]
        is_blank = block <= BLANK
        if (is_blank[1:] & is_blank[:-1]).any():
            return False
        if np.count_nonzero(block < BLANK) != np.count_nonzero(block == NEWLINE):
            return False
    if data.isascii():
        return True
    try:
        return UNICODE_BLANK.search(data.decode()) is None
    except UnicodeDecodeError:
        return False


def _parse_columns(data: bytes, columns: Sequence[str], kinds: dict[str, Any]) -> Any:  # noqa: ANN401 - a table of pyarrow, which has no types
    return pyarrow.csv.read_csv(
        pa.BufferReader(data),
        read_options=pyarrow.csv.ReadOptions(column_names=list(columns)),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=" ", quote_char=False, double_quote=False, newlines_in_values=False
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=list(kinds),
            column_types=kinds,
            null_values=[],
            strings_can_be_null=False,
        ),
        memory_pool=pa.system_memory_pool(),  # the other ones keep what was freed
    )


def _read_floats(column: Any) -> NDArray[np.float64]:  # noqa: ANN401
    """The numbers of a column.

    Raises:
        ValueError: One is not finite; only the plain reader knows whether Python reads it so.
    """
    values = np.concatenate([_view_numbers(chunk, np.float64) for chunk in column.chunks])
    if not np.isfinite(values).all():
        raise ValueError("not finite")
    return values


def _read_integers(column: Any) -> IntArray:  # noqa: ANN401
    """The whole numbers of a column of strings, as Python reads them: pyarrow would read 0x10."""
    codes, texts = _dictionary([_combine_chunks(column.chunks)])
    return np.array([int(text) for text in texts.to_pylist()], dtype=np.int64)[codes]


def _encode_column(column: Any) -> CategoricalIds:  # noqa: ANN401
    """A column of few distinct ids."""
    codes, names = _dictionary([_combine_chunks(column.chunks)])
    known = encode_ids(names.to_pylist())
    return CategoricalIds(known.codes[codes], known.vocabulary)


def encode_documents(tables: Sequence[RawTable]) -> list[RawTable]:
    """The tables with their document ids coded by one vocabulary that they share."""
    lengths = [len(table.documents) for table in tables]
    chunks = [chunk for table in tables for chunk in _take_chunks(table.documents)]
    codes, names = _dictionary(chunks)
    ids = _id_bytes(names)
    order, _ = sort_by_bytes(ids)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    vocabulary = IdVocabulary(ids.take(order))
    return [
        replace(table, documents=CategoricalIds(rank[part], vocabulary))
        for table, part in zip(tables, np.split(codes, np.cumsum(lengths)[:-1]), strict=True)
    ]


def _take_chunks(ids: Sequence[str] | CategoricalIds | ArrowStrings) -> list[Any]:
    """Ids as Arrow arrays, which nobody else keeps: they are large."""
    if not isinstance(ids, ArrowStrings):
        return [pa.array(list(cast("Sequence[str]", ids)), pa.string())]
    chunks = ids.chunks.copy()
    ids.chunks.clear()
    return chunks


def _combine_chunks(chunks: list[Any]) -> Any:  # noqa: ANN401
    """One Arrow array: many take far longer to encode."""
    if sum(chunk.nbytes for chunk in chunks) > MAX_STRING_BYTES:
        chunks = [chunk.cast(pa.large_string()) for chunk in chunks]
    return pa.concat_arrays(chunks, pa.system_memory_pool())


def _dictionary(chunks: list[Any]) -> tuple[NDArray[np.int32], Any]:
    """Codes in order of first appearance, and the distinct strings."""
    column = pa.chunked_array(chunks)
    encoded = pyarrow.compute.dictionary_encode(column, memory_pool=pa.system_memory_pool())
    codes = [_view_numbers(chunk.indices, np.int32) for chunk in encoded.chunks]
    return np.concatenate(codes), encoded.chunk(0).dictionary


def _view_numbers(array: Any, kind: type[np.generic]) -> NDArray[Any]:  # noqa: ANN401
    """The numbers of an Arrow array without nulls, not copied."""
    return np.frombuffer(array.buffers()[1], dtype=kind)[array.offset : array.offset + len(array)]


def _id_bytes(strings: Any) -> IdBytes:  # noqa: ANN401
    """The bytes of Arrow strings, not copied."""
    _, offsets, data = strings.buffers()
    kind = np.int64 if pa.types.is_large_string(strings.type) else np.int32
    limits = np.frombuffer(offsets, dtype=kind)[strings.offset :][: len(strings) + 1]
    ends = limits.astype(np.int64)
    return IdBytes(np.frombuffer(data, dtype=np.uint8), ends[:-1], np.diff(ends))
