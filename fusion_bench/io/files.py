"""Files to records: numbers parsed, rules checked, errors with file and line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.records import Qrels, Query, Reading, Run, ScoreSpace
from fusion_bench.errors import DataError
from fusion_bench.io._raw_table import Rows, read_rows, suffix_of
from fusion_bench.io.json_lines import objects, text_of

__all__ = ["load_qrels", "load_queries", "load_run", "qrels_of", "run_of"]


def load_qrels(path: Path) -> Qrels:
    """Read judgements: TREC, .tsv, .csv, .jsonl or .parquet, gzip or not.

    Raises:
        DataError: Says file, line and rule.
    """
    return qrels_of(path, read_rows(path, "qrels"))


def qrels_of(path: Path, rows: Rows) -> Qrels:
    """Judgements from a file's rows; see :func:`load_qrels`."""
    with _located(path, rows):
        return Qrels.from_rows(rows.queries, rows.documents, _integers(rows.values, "grade"))


def load_run(
    path: Path,
    *,
    name: str | None = None,
    roles: frozenset[str] = frozenset(),
    reading: Reading | None = None,
    score_space: ScoreSpace | None = None,
) -> Run:
    """Read one ranked list a query: TREC, .tsv, .csv, .jsonl or .parquet, gzip or not.

    Args:
        path: The file.
        name: Name of the source; the file's own by default.
        roles: What it was asked with and how it found.
        reading: Options that decide its ranks.
        score_space: For a rerank list: what its numbers mean; a value outside is an error.

    Raises:
        DataError: Says file, line and rule.
    """
    return run_of(
        path, read_rows(path, "run"), name or _stem(path), roles, reading or Reading(), score_space
    )


def run_of(
    path: Path,
    rows: Rows,
    name: str,
    roles: frozenset[str],
    reading: Reading,
    score_space: ScoreSpace | None,
) -> Run:
    """One list a query from a file's rows; see :func:`load_run`."""
    with _located(path, rows):
        scores = _numbers(rows.values)
        if score_space is not None:
            _check_space(scores, score_space)
        ranks = None
        if reading.rank_from == "column" and rows.ranks is not None:
            ranks = _integers(rows.ranks(), "rank")
        return Run.from_rows(
            name,
            rows.queries,
            rows.documents,
            scores,
            ranks=ranks,
            roles=roles,
            reading=reading,
        )


def load_queries(path: Path) -> dict[str, Query]:
    """Read what is known of the queries from JSON Lines; ``_id`` is read as ``id``.

    Raises:
        DataError: A line without an id, an id given twice, or a value of the wrong kind.
    """
    queries: dict[str, Query] = {}
    for number, item in objects(path):
        where = f"{path}:{number}"
        query = _query(item, where)
        if query.id in queries:
            raise DataError(f"{where}: query {query.id!r} stands twice: keep one")
        queries[query.id] = query
    if not queries:
        raise DataError(f"{path}: the file is empty: at least one query is needed")
    return queries


def _query(item: dict[str, Any], where: str) -> Query:
    given = item.get("id", item.get("_id"))
    if given is None or given == "":
        raise DataError(f"{where}: a query needs an 'id' (found: {', '.join(item) or 'nothing'})")
    texts = {
        key: text_of(item[key], key, where)
        for key in ("text", "type", "intent", "group", "split")
        if item.get(key) is not None
    }
    confidence = item.get("confidence")
    number = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if confidence is not None and not (number and 0 <= confidence <= 1):
        raise DataError(f"{where}: confidence must be between 0 and 1, given {confidence!r}")
    return Query(id=text_of(given, "id", where), confidence=confidence, **texts)


@contextmanager
def _located(path: Path, rows: Rows) -> Iterator[None]:
    """Turn the row of an error into file and line."""
    try:
        yield
    except DataError as error:
        line = "" if error.row is None else f":{rows.lines[error.row]}"
        raise DataError(f"{path}{line}: {error}") from None


def _numbers(values: Sequence[str | float] | NDArray[np.number]) -> FloatArray:
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


def _integers(values: Sequence[str | float] | NDArray[np.number], what: str) -> IntArray:
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


def _stem(path: Path) -> str:
    """The file's name without ``.gz`` and the suffix of its format."""
    name = path.name
    for suffix in reversed(path.suffixes):
        if suffix.lower() in {".gz", suffix_of(path)}:
            name = name.removesuffix(suffix)
    return name
