"""Regular tables by pyarrow: columns of text parsed, ids numbered without a string of each.

pyarrow splits on exactly one separator, knows no white space but that, and would take an empty
cell for a value. So the bytes are searched for whatever is irregular before it sees them; what is
found, or refused by pyarrow, goes to the plain reader of its format, which decides.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from fusion_bench.data.grouped_rows import CategoricalIds, encode_arrow
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.read_options import parse_whole_numbers
from fusion_bench.errors import DataError
from fusion_bench.io.raw_files import ArrowStrings, RawTable

BLANK, NEWLINE = b" \n"
#: Bytes that are searched at a time: they fit a core's cache.
BLOCK: Final = 1 << 17
#: What separates the columns of a line for Python, beyond what ASCII has.
UNICODE_BLANK: Final = re.compile(
    "[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"
)


def parse_regular_text(data: bytes, columns: Sequence[str], value: str) -> RawTable | None:
    """The rows of a text whose columns stand between single blanks.

    Args:
        data: The bytes of the text.
        columns: Name of each column; ``query`` and ``document`` are among them, and ``value`` or
            ``rank`` or both.
        value: Name of the column of values: ``score`` for numbers, another for whole numbers.

    Returns:
        None if it has to be read line by line.
    """
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    if not is_regular(data):
        return None
    present = [name for name in (value, "rank") if name in columns]
    kinds = dict.fromkeys(("query", "document", *present), pa.large_string())
    if "score" in kinds:
        kinds["score"] = pa.float64()
    # pyarrow reads 0x10 as a whole number. One byte is found 30 times as fast as three.
    if "rank" in kinds and not any(x in data and b" 0" + x in data for x in (b"x", b"X")):
        kinds["rank"] = pa.int64()
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(data),
            read_options=pyarrow.csv.ReadOptions(column_names=list(columns)),
            parse_options=pyarrow.csv.ParseOptions(delimiter=" ", quote_char=False),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=list(kinds), column_types=kinds, null_values=[]
            ),
            memory_pool=pa.system_memory_pool(),  # the other ones keep what was freed
        )
        numbers = {name: _read_numbers(table[name]) for name in present}
        return RawTable(
            queries=_encode_column(table["query"]),
            documents=ArrowStrings([_combine_chunks(table["document"])]),
            values=numbers.get(value),
            ranks=numbers.get("rank"),
            lines=range(1, table.num_rows + 1),
        )
    except (pa.ArrowInvalid, DataError, ValueError):
        return None


def tabulate_columns(columns: Mapping[str, Any]) -> RawTable | None:
    """The rows of columns that Arrow holds already, such as those of a Parquet table.

    Args:
        columns: Chunked arrays: ``query`` and ``document``, and ``value`` or ``rank`` or both.

    Returns:
        None if a value has to be looked at singly: one is missing, an id is neither text nor a
        whole number, a text is no UTF-8, or a number is none of numpy's.
    """
    rows = len(columns["query"])
    if not rows or any(column.null_count for column in columns.values()):
        return None
    try:
        numbers = {role: _to_numpy(columns[role]) for role in columns.keys() & {"value", "rank"}}
        return RawTable(
            queries=encode_arrow([_to_strings(columns["query"])]),
            documents=ArrowStrings([_to_strings(columns["document"])]),
            values=numbers.get("value"),
            ranks=numbers.get("rank"),
            lines=range(1, rows + 1),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError):
        return None


def _to_strings(column: Any) -> Any:  # noqa: ANN401 - an array of pyarrow, which has no types
    """Ids as one array of strings; a whole number stands for its digits.

    Raises:
        TypeError: They are neither text nor whole numbers.
        pyarrow.ArrowInvalid: A text is no UTF-8.
    """
    kinds = pa.types
    is_text = (kinds.is_string, kinds.is_large_string, kinds.is_integer)
    if not any(is_kind(column.type) for is_kind in is_text):
        raise TypeError(f"{column.type} holds no ids")
    strings = _combine_chunks(column.cast(pa.large_string()))
    strings.validate(full=True)
    return strings


def _to_numpy(column: Any) -> NDArray[np.number]:  # noqa: ANN401
    """The numbers of a column.

    Raises:
        TypeError: They are text, decimals, truth values or anything else.
    """
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise TypeError(f"{column.type} holds no numbers of numpy")
    return np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks])


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


def _read_numbers(column: Any) -> FloatArray | IntArray:  # noqa: ANN401
    """The numbers of a column of numbers, or of strings that stand for whole numbers.

    Raises:
        ValueError: One is not finite; only the plain reader knows whether Python reads it so.
    """
    if pa.types.is_large_string(column.type):  # pyarrow would read 0x10
        texts = _encode_column(column)
        return parse_whole_numbers(list(texts.vocabulary), "number")[texts.codes]
    values: FloatArray | IntArray = np.concatenate(list(map(np.from_dlpack, column.chunks)))
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("not finite")
    return values


def _encode_column(column: Any) -> CategoricalIds:  # noqa: ANN401
    return encode_arrow([_combine_chunks(column)])


def _combine_chunks(column: Any) -> Any:  # noqa: ANN401
    """One Arrow array: many take far longer to encode."""
    return pa.concat_arrays(column.chunks, pa.system_memory_pool())


def encode_documents(tables: Sequence[RawTable]) -> list[RawTable]:
    """The tables with their document ids coded by one vocabulary that they share."""
    lengths = [len(table.documents) for table in tables]
    column = encode_arrow([_take_strings(table.documents) for table in tables])
    parts = np.split(column.codes, np.cumsum(lengths)[:-1])
    return [
        replace(table, documents=CategoricalIds(part, column.vocabulary))
        for table, part in zip(tables, parts, strict=True)
    ]


def _take_strings(ids: Sequence[str] | CategoricalIds | ArrowStrings) -> Any:  # noqa: ANN401
    """Ids as an Arrow array, which nobody else keeps: it is large."""
    if isinstance(ids, ArrowStrings):
        return ids.chunks.pop()
    return pa.array(list(ids), pa.large_string())  # type: ignore[arg-type]
