"""Random lists and judgments in every file format, and what may go wrong with their bytes."""

import gzip
import io
import json
import random
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet

from fusion_bench.io.raw_files import Kind

#: Format → suffix of its files.
SUFFIXES: Final = {
    "trec": ".trec",
    "msmarco": ".txt",
    "csv": ".csv",
    "tsv": ".tsv",
    "jsonl": ".jsonl",
    "parquet": ".parquet",
}
#: Spellings of numbers, in Python, C, YAML and elsewhere.
NUMBERS: Final = (
    *("0", "-0", "+5", "05", ".5", "5.", "1e3", "1E-3", "1.0", "2.00", "-1", "1e400", "1e-400"),
    *("18446744073709551616", "36893488147419103232", "1.8446744073709551616"),
    *("3.6893488147419103232", "-9.2233720368547758080", "9223372036854775808", "9007199254740993"),
    *("9007199254740992", "-9007199254740993", "1" * 400, "0." + "0" * 330 + "1", "4.9e-324"),
    *("2.2250738585072011e-308", "8.41e21", "0.1000000000000000055511151231257827", "1e23"),
    *("1_000", "1_0.5", "１２", "٣", "1٫5", "0x10", "0x1p3", "0b1", "0o7", "1:30", "nan", "-nan"),
    *("NaN", "nan(1)", "inf", "-Infinity", "INFINITY", "1,5", "1.5.2", "1e", "e5", "+-1", "--1"),
    *("1e+", "1.e5", ".", "-", "+", "1f", "1d", "1L", "½", "²", "五", "true", "null", "NA"),
)
#: What may stand in the place of some bytes.
PIECES: Final = (
    *(b" ", b"  ", b"\t", b"\r", b"\r\n", b"\n", b"\n\n", b"\0", b"\x0b", b"\x1c", b"\x7f", b""),
    *(text.encode() for text in ("\u00a0", "\u2003", "\u0085", "é", "文", "\ufeff", "\U0001f642")),
    *(b'"', b"'", b"\\", b"#", b",", b";", b"|", b":", b"{", b"}", b"[", b"]", b"\xff", b"\xc3"),
    *(b"q0", b'"query":', b'"score": 1, ', b'{"query": "q0"}', b"\\ud800", b"\xed\xa0\x80"),
    *(number.encode() for number in NUMBERS),
)
VALUES: Final[dict[Kind, tuple[str, ...]]] = {"run": ("rank", "score"), "qrels": ("grade",)}


class Table(NamedTuple):
    """A run or judgments as text.

    Attributes:
        kind: Which of the two.
        columns: Names of the columns.
        rows: A cell a column.
    """

    kind: Kind
    columns: tuple[str, ...]
    rows: list[list[str]]

    def take_column(self, name: str) -> list[str]:
        return [row[self.columns.index(name)] for row in self.rows]


def make_table(rng: random.Random) -> Table:
    """A table that every reader accepts."""
    kind: Kind = rng.choice(["run", "run", "qrels"])
    rows: list[list[str]] = []
    for query in range(rng.randint(1, 4)):
        for rank, document in enumerate(rng.sample(range(50), rng.randint(1, 6)), start=1):
            score = f"{rng.uniform(-9, 9):.{rng.randint(0, 8)}f}"
            values = [str(rank), score] if kind == "run" else [str(document % 4)]
            rows.append([f"q{query}", f"doc{document}", *values])
    return Table(kind, ("query", "document", *VALUES[kind]), rows)


def misspell_cell(table: Table, rng: random.Random) -> Table:
    """The table with another number in some cells of its last column."""
    rows = [list(row) for row in table.rows]
    for _ in range(rng.choice((1, 1, 2))):
        rng.choice(rows)[-1] = rng.choice(NUMBERS) if rng.random() < 0.7 else make_number(rng)
    return table._replace(rows=rows)


def make_number(rng: random.Random) -> str:
    """Characters of numbers, mostly in an order that makes one."""
    if rng.random() < 0.3:
        return "".join(rng.choices("0123456789+-.eE_", k=rng.randint(1, 12)))
    sign = rng.choice(("", "", "-", "+"))
    whole = "".join(rng.choices("0123456789", k=rng.choice((1, 3, 19, 20, 25, 40))))
    part = "." + "".join(rng.choices("0123456789", k=rng.choice((1, 17, 30))))
    power = f"e{rng.randint(-330, 310)}"
    return sign + whole + rng.choice(("", part)) + rng.choice(("", "", "", power))


def format_table(table: Table, name: str, rng: random.Random) -> bytes:
    if name in {"trec", "msmarco"}:
        return _join_lines([_trec_cells(row, table.kind, name) for row in table.rows], " ")
    columns = rng.sample(table.columns, len(table.columns))
    if name in {"csv", "tsv"}:
        cells = zip(*map(table.take_column, columns), strict=True)
        return _join_lines([columns, *cells], "," if name == "csv" else "\t")
    if name == "jsonl":
        objects = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        lines = [json.dumps({key: item[key] for key in columns}) for item in objects]
        return ("\n".join(lines) + "\n").encode()
    return write_parquet({key: table.take_column(key) for key in columns})


def _trec_cells(row: Sequence[str], kind: Kind, name: str) -> list[str]:
    query, document, *values = row
    if kind == "qrels":
        return [query, "0", document, *values]
    if name == "msmarco":
        return [query, document, values[0]]
    return [query, "Q0", document, *values, "tag"]


def _join_lines(lines: Sequence[Sequence[str]], separator: str) -> bytes:
    """Lines of cells; one that holds the separator itself stands between quotation marks."""
    return "".join(
        separator.join(f'"{cell}"' if separator in cell else cell for cell in cells) + "\n"
        for cells in lines
    ).encode()


def write_parquet(columns: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def mutate(data: bytes, rng: random.Random) -> bytes:
    """The bytes with up to three things changed, and then perhaps the whole file."""
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        data = rng.choice(CHANGES)(data, rng)
    return rng.choice(WHOLE_FILE)(data) if rng.random() < 0.15 else data


def _flip_bit(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    if changed:
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _splice(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.choice(PIECES) + data[start + rng.choice((0, 0, 1, 2, 9)) :]


def _replace_cell(data: bytes, rng: random.Random) -> bytes:
    marks = [mark for mark in (b" ", b",", b"\t", b'"', b": ") if mark in data]
    separator = rng.choice(marks or [b" "])
    cells = data.split(separator)
    cells[rng.randrange(len(cells))] = rng.choice(PIECES)
    return separator.join(cells)


def _move_line(data: bytes, rng: random.Random) -> bytes:
    """A line taken out, repeated or put elsewhere."""
    lines = data.split(b"\n")
    line = rng.choice(lines)
    if rng.random() < 0.5:
        lines.remove(line)
    lines[rng.randrange(len(lines) + 1) : 0] = [line] * rng.randint(0, 1)
    return b"\n".join(lines)


def _repeat_key(data: bytes, rng: random.Random) -> bytes:
    """A pair of JSON, or a cell of a table, once more."""
    separator = b", " if b'": ' in data else b","
    parts = data.split(separator)
    parts.insert(rng.randrange(len(parts) + 1), rng.choice(parts).strip(b"{}\n"))
    return separator.join(parts)


def _change_separators(data: bytes, rng: random.Random) -> bytes:
    old, new = rng.sample((b" ", b"\t", b",", b";", b"  "), 2)
    return data.replace(old, new)


CHANGES: Final[tuple[Callable[[bytes, random.Random], bytes], ...]] = (
    _flip_bit,
    _splice,
    _splice,
    _replace_cell,
    _replace_cell,
    _move_line,
    _repeat_key,
    _change_separators,
)


def _encode_again(encoding: str) -> Callable[[bytes], bytes]:
    return lambda data: data.decode(errors="replace").encode(encoding, errors="replace")


WHOLE_FILE: Final[tuple[Callable[[bytes], bytes], ...]] = (
    lambda data: b"\xef\xbb\xbf" + data,
    lambda data: data.replace(b"\n", b"\r\n"),
    lambda data: data.replace(b"\n", b"\r"),
    lambda data: data.rstrip(b"\n"),
    lambda data: gzip.compress(data, mtime=0),
    lambda data: gzip.compress(data, mtime=0)[:-9],
    lambda data: gzip.compress(data, mtime=0)[: len(data) // 3],
    _encode_again("utf-16"),
    _encode_again("latin-1"),
    _encode_again("shift-jis"),
)
