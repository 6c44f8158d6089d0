"""Files to records: numbers parsed, rules checked, errors with file and line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ids import CategoricalIds
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import Qrels, Run, ScoreSpace
from fusion_bench.errors import DataError
from fusion_bench.io.file_bytes import strip_suffixes
from fusion_bench.io.formats import read_raw_table
from fusion_bench.io.raw_table import ArrowStrings, RawTable


def load_qrels(path: Path) -> Qrels:
    """Read judgements: TREC, .tsv, .csv, .jsonl or .parquet, gzip or not.

    Raises:
        DataError: Says file, line and rule.
    """
    (rows,) = encode_tables([read_raw_table(path, "qrels")])
    return make_qrels(path, rows)


def make_qrels(path: Path, rows: RawTable) -> Qrels:
    """Judgements from a file's rows; see :func:`load_qrels`."""
    with _locate_errors(path, rows):
        grades = _parse_integers(rows.values, "grade")
        return Qrels.from_rows(rows.queries, _encoded_documents(rows), grades)


def load_run(
    path: Path,
    *,
    name: str | None = None,
    roles: frozenset[str] = frozenset(),
    read_options: ReadOptions | None = None,
    score_space: ScoreSpace | None = None,
) -> Run:
    """Read one ranked list a query: TREC, .tsv, .csv, .jsonl or .parquet, gzip or not.

    Args:
        path: The file.
        name: Name of the source; the file's own by default.
        roles: What it was asked with and how it found.
        read_options: Options that decide its ranks.
        score_space: For a rerank list: what its numbers mean; a value outside is an error.

    Raises:
        DataError: Says file, line and rule.
    """
    read_options = read_options or ReadOptions()
    has_ranks = read_options.rank_from == "column"
    (rows,) = encode_tables([read_raw_table(path, "run", has_ranks=has_ranks)])
    return make_run(path, rows, name or strip_suffixes(path), roles, read_options, score_space)


def encode_tables(tables: list[RawTable]) -> list[RawTable]:
    """The tables with what pyarrow read of their document ids encoded together."""
    if not any(isinstance(table.documents, ArrowStrings) for table in tables):
        return tables
    from fusion_bench.io.arrow_text import encode_documents

    return encode_documents(tables)


def make_run(
    path: Path,
    rows: RawTable,
    name: str,
    roles: frozenset[str],
    read_options: ReadOptions,
    score_space: ScoreSpace | None,
) -> Run:
    """One list a query from a file's rows; see :func:`load_run`."""
    with _locate_errors(path, rows):
        scores = _parse_floats(rows.values)
        if score_space is not None:
            _check_space(scores, score_space)
        ranks = None
        if read_options.rank_from == "column" and rows.ranks is not None:
            ranks = _parse_integers(rows.ranks, "rank")
        return Run.from_rows(
            name,
            rows.queries,
            _encoded_documents(rows),
            scores,
            ranks=ranks,
            roles=roles,
            read_options=read_options,
        )


def _encoded_documents(rows: RawTable) -> Sequence[str] | CategoricalIds:
    if isinstance(rows.documents, ArrowStrings):
        raise TypeError("encode_tables comes first")
    return rows.documents


@contextmanager
def _locate_errors(path: Path, rows: RawTable) -> Iterator[None]:
    """Turn the row of an error into file and line."""
    try:
        yield
    except DataError as error:
        line = "" if error.row is None else f":{rows.lines[error.row]}"
        raise DataError(f"{path}{line}: {error}") from None


def _parse_floats(values: Sequence[str | float] | NDArray[np.number]) -> FloatArray:
    if isinstance(values, np.ndarray):
        return values.astype(np.float64, copy=False)
    numbers: list[float] = []
    try:
        numbers.extend(map(float, values))
    except (TypeError, ValueError, OverflowError):
        row = len(numbers)  # as far as it went
        raise DataError(f"score {values[row]!r} is not a number", row=row) from None
    _refuse_booleans(values, "score")
    return np.array(numbers)


def _refuse_booleans(values: Sequence[str | float], what: str) -> None:
    """Python counts with true and false; whoever wrote one meant something else."""
    if bool in set(map(type, values)):
        row = next(row for row, value in enumerate(values) if isinstance(value, bool))
        raise DataError(f"{what} {values[row]!r} is not a number", row=row)


def _parse_integers(values: Sequence[str | float] | NDArray[np.number], what: str) -> IntArray:
    if isinstance(values, np.ndarray):
        return values.astype(np.int64, copy=False)
    _refuse_booleans(values, what)
    whole = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values):
        try:
            whole[row] = int(value)
            exact = not isinstance(value, float) or value == whole[row]
        except (TypeError, ValueError, OverflowError):
            exact = False
        if not exact:
            raise DataError(f"{what} {value!r} is not a whole number", row=row)
    return whole


def _check_space(scores: FloatArray, space: ScoreSpace) -> None:
    allowed = {"unit": (0.0, 1.0, "between 0 and 1"), "log_prob": (-np.inf, 0.0, "at most 0")}
    if space not in allowed:
        return
    low, high, rule = allowed[space]
    outside = np.flatnonzero((scores < low) | (scores > high))
    if len(outside):
        raise DataError(
            f"rerank score {scores[outside[0]]:g} is outside its declared score_space "
            f"'{space}', which is {rule}: declare the right one "
            "(unit, logit, log_prob, unbounded, order)",
            row=int(outside[0]),
        )
