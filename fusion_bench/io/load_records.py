"""Files to records: numbers parsed, rules checked, errors with file, line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fusion_bench.data.grouped_rows import CategoricalIds, encode_ids
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions, parse_scores, parse_whole_numbers
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import DataError, UnknownNameError
from fusion_bench.io.formats import read_raw_table, source_name
from fusion_bench.io.raw_files import DEFAULT_LAYOUT, ArrowStrings, FileLayout, RawTable

if TYPE_CHECKING:
    from fusion_bench.io.dataset import Dataset


def load_qrels(path: str | PathLike[str], *, layout: FileLayout = DEFAULT_LAYOUT) -> Qrels:
    """Read judgments: TREC, .csv, .tsv, .json, .jsonl or .parquet, gzip or not.

    Args:
        path: The file.
        layout: Its format and the names of its columns, where they are not the usual ones.

    Raises:
        DataError: Says file, line and rule.
    """
    file = Path(path)
    (rows,) = encode_tables([read_raw_table(file, "qrels", layout=layout)])
    return make_qrels(file, rows)


def make_qrels(path: Path, rows: RawTable) -> Qrels:
    """Judgments from a file's rows; see :func:`load_qrels`."""
    with _locate_errors(path, rows):
        if rows.values is None:
            raise DataError("no grades, only ranks: judgments need a grade for each document")
        return Qrels.from_rows(rows.queries, _encoded_documents(rows), rows.values)


def load_run(
    path: str | PathLike[str],
    *,
    name: str | None = None,
    roles: frozenset[str] = frozenset(),
    read_options: ReadOptions | None = None,
    score_space: ScoreSpace | None = None,
    layout: FileLayout = DEFAULT_LAYOUT,
) -> Run:
    """Read one ranked list a query: TREC, .csv, .tsv, .json, .jsonl or .parquet, gzip or not.

    Args:
        path: The file; or a folder of JSON answers, one file a query.
        name: Name of the source; the file's own by default.
        roles: What it was asked with and how it found.
        read_options: Options that decide its ranks.
        score_space: For a rerank list: what its numbers mean; a value outside is an error.
        layout: Its format and the names of its columns, where they are not the usual ones.

    Raises:
        DataError: Says file, line and rule.
    """
    read_options = read_options or ReadOptions()
    has_ranks = read_options.rank_from == "column"
    file = Path(path)
    (rows,) = encode_tables([read_raw_table(file, "run", has_ranks=has_ranks, layout=layout)])
    return make_run(file, rows, name or source_name(file), roles, read_options, score_space)


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
        ranks = None
        if rows.ranks is not None and (read_options.rank_from == "column" or rows.values is None):
            ranks = parse_whole_numbers(rows.ranks, "rank")
        scores = _score_ranks(rows, ranks) if rows.values is None else parse_scores(rows.values)
        if score_space is not None:
            check_score_space(scores, score_space)
        made = Run.from_rows(
            name,
            rows.queries,
            _encoded_documents(rows),
            scores,
            ranks=ranks if read_options.rank_from == "column" else None,
            roles=roles,
            read_options=read_options,
        )
        return replace(made, bare=rows.bare)


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
        place = "" if error.row is None else rows.lines[error.row]
        line = f":{place}" if isinstance(place, int) else place
        raise DataError(f"{path}{line}: {error}") from None


def _score_ranks(rows: RawTable, ranks: IntArray | None) -> FloatArray:
    """Scores for documents of which only ranks are known: n … 1 for a list of n documents.

    These are the points of a Borda count, and what a list of bare document ids is given elsewhere.
    """
    if ranks is None:
        raise DataError("neither scores nor ranks: one of them is needed")
    if (ranks < 0).any():
        row = int(np.argmax(ranks < 0))
        raise DataError(f"rank {ranks[row]} is negative; ranks start at 0 or 1", row=row)
    queries = encode_ids(rows.queries).codes
    order = np.lexsort((-np.arange(len(ranks)), -ranks, queries))  # of each query the last first
    starts = np.flatnonzero(np.diff(queries[order], prepend=-1))
    lengths = np.diff(starts, append=len(order))
    scores = np.empty(len(order))
    scores[order] = np.arange(1, len(order) + 1) - np.repeat(starts, lengths)
    return scores


def check_score_space(scores: FloatArray, space: ScoreSpace) -> None:
    """Check that rerank scores lie where their score space says.

    Raises:
        DataError: One does not.
    """
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


def load_judge(dataset: Dataset, name: str) -> Qrels:
    """The grades of a judge that ``judges`` of the ``dataset.yaml`` names.

    Args:
        dataset: The dataset.
        name: The judge; ``qrels`` = the judgments themselves, unless a judge has that name.

    Raises:
        UnknownNameError: There is no such judge.
        DataError: The file breaks a rule, or holds a grade that ``map`` does not name.
    """
    spec = dataset.spec.judges.get(name)
    if spec is None:
        if name == "qrels":
            return dataset.qrels
        raise UnknownNameError(
            "judge", name, [*dataset.spec.judges, "qrels"], where=f"{dataset.name}: judges"
        )
    file = dataset.files[f"judges/{name}"]
    grades = load_qrels(file.path, layout=file.layout)
    return grades if spec.map is None else _map_grades(grades, spec.map, f"{file.path}")


def _map_grades(qrels: Qrels, grades: Mapping[int, int], where: str) -> Qrels:
    """The same judgments with each grade replaced.

    Raises:
        DataError: A grade has no replacement.
    """
    mapped = np.empty_like(qrels.grades)
    for grade in np.unique(qrels.grades).tolist():
        if grade not in grades:
            known = ", ".join(map(str, sorted(grades)))
            raise DataError(
                f"{where}: grade {grade} is not in 'map' of this judge (it has {known}): add it"
            )
        mapped[qrels.grades == grade] = grades[grade]
    return replace(qrels, grades=mapped)
