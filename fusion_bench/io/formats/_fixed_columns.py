"""Files without a header: cells in the columns of a TREC file, or three columns of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fusion_bench.errors import DataError
from fusion_bench.io.raw_table import Kind, RawTable
from fusion_bench.util.decimal_numbers import is_decimal, is_whole, parse_whole

COLUMNS: Final[dict[Kind, tuple[str, ...]]] = {
    "run": ("query", "Q0", "document", "rank", "score", "tag"),
    "qrels": ("query", "0", "document", "grade"),
}
#: Source: the passage ranking task of MS MARCO, https://microsoft.github.io/msmarco/
MS_MARCO: Final = ("query", "document", "rank")
#: Three columns whose third has a number that is not whole, and so is no rank.
SCORED: Final = ("query", "document", "score")


def select_names(kind: Kind, width: int) -> tuple[str, ...]:
    """The columns of a file whose first line has so many cells."""
    return MS_MARCO if kind == "run" and width == len(MS_MARCO) else COLUMNS[kind]


def fits_columns(cells: Sequence[str], kind: Kind) -> bool:
    """Whether a line has the columns of its kind, with numbers where numbers belong."""
    names = select_names(kind, len(cells))
    if len(cells) != len(names):
        return False
    columns = dict(zip(names, cells, strict=True))
    if names == MS_MARCO:
        return is_decimal(columns["rank"])  # or a score
    wholes = [columns[name] for name in ("rank", "grade") if name in columns]
    return all(map(is_whole, wholes)) and is_decimal(columns.get("score", "0"))


def tabulate_cells(path: Path, kind: Kind, lines: Sequence[tuple[int, list[str]]]) -> RawTable:
    """The rows of numbered lines; the first decides which columns there are.

    Raises:
        DataError: A line has more columns, or fewer; or what should be ranks is none.
    """
    if not lines:
        return RawTable([], [], [], None, [])
    names = select_names(kind, len(lines[0][1]))
    for number, cells in lines:
        if len(cells) != len(names):
            raise DataError(
                f"{path}:{number}: {len(cells)} columns, and {_describe_columns(kind, names)}"
            )
    column = dict(zip(names, zip(*(cells for _, cells in lines), strict=True), strict=True))
    if names == MS_MARCO and _holds_scores(column["rank"]):
        column["score"] = column.pop("rank")
    elif names == MS_MARCO:
        _check_ranks(path, lines)
    return RawTable(
        queries=column["query"],
        documents=column["document"],
        values=column.get("score", column.get("grade")),
        ranks=column.get("rank"),
        lines=[number for number, _ in lines],
    )


def _holds_scores(third: Sequence[str]) -> bool:
    """Whether a third column has numbers alone, and one that no rank and no grade can be."""
    return all(map(is_decimal, third)) and not all(map(is_whole, third))


def _describe_columns(kind: Kind, names: Sequence[str]) -> str:
    if names == MS_MARCO:
        return "the first line has 3: query, document, and a score or a rank"
    return f"a TREC {kind} has {len(names)}: {' '.join(names)}"


def _check_ranks(path: Path, lines: Sequence[tuple[int, list[str]]]) -> None:
    """Refuse a third column that is not the ranks of each query, from 1.

    Raises:
        DataError: It may be scores: the order of such a file would be turned round.
    """
    first_line: dict[str, int] = {}
    last_rank: dict[str, int] = {}
    with_best: set[str] = set()
    steps: set[bool] = set()  # whether ranks rise from one line of a query to its next
    for number, (query, _, rank) in lines:
        if not (is_whole(rank) and parse_whole(rank) > 0):
            raise DataError(
                f"{path}:{number}: 3 columns of whole numbers are those of an MS MARCO run (query "
                f"document rank), and {rank!r} is not a rank from 1: if it is a score, write a "
                "header that says so (query,document,score); if it is a grade, give the file as "
                f"judgments ({' '.join(COLUMNS['qrels'])})"
            )
        first_line.setdefault(query, number)
        place = parse_whole(rank)
        if place == 1:
            with_best.add(query)
        if query in last_rank:
            steps.add(place >= last_rank[query])
        last_rank[query] = place
    for query, number in first_line.items():
        if query not in with_best:
            raise DataError(
                f"{path}:{number}: query {query!r} has no document of rank 1, as each query of an "
                "MS MARCO run (query document rank) has: if the third column is the score, write "
                "a header that says so"
            )
    if steps == {False}:
        raise DataError(
            f"{path}: the third column falls along every list, as scores do, and that of an MS "
            "MARCO run (query document rank) is the rank: if it is, write rank 1 first; if it is "
            "the score, write a header that says so"
        )
