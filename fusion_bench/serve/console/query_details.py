"""One query under two settings: both lists side by side, and why documents moved."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from fusion_bench.explain.score_trace import Explanation, ScoreTrace
from fusion_bench.gate.regressions import explain_move
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.excerpts import read_titles

#: Documents of each list that are shown.
SHOWN: Final = 20


@dataclass(frozen=True)
class ListedDocument:
    """A document of one list.

    Attributes:
        document: Its id.
        title: Its title, or the beginning of its text; empty where neither is known.
        grade: As judged; None = unjudged.
        rank: In this list.
        other_rank: In the other list; None = not returned there.
        score: Final score.
        terms: Summands of the score by label.
    """

    document: str
    title: str
    grade: int | None
    rank: int
    other_rank: int | None
    score: float
    terms: dict[str, float]


@dataclass(frozen=True)
class Move:
    """A document that stands elsewhere now.

    Attributes:
        document: Its id.
        title: Its title, or the beginning of its text.
        grade: As judged; None = unjudged.
        before: Rank in the first list; None = not returned.
        after: Rank in the second list.
        cause: The terms of its score that changed, or what passed it.
    """

    document: str
    title: str
    grade: int | None
    before: int | None
    after: int | None
    cause: str


class KnownTitles:
    """Titles of documents, each looked up once: that takes seconds in a large file.

    Args:
        documents: As for :func:`~fusion_bench.io.excerpts.read_titles`.
    """

    def __init__(self, documents: Path | None) -> None:
        self._documents = documents
        self._titles: dict[str, str] = {}

    def find_titles(self, names: Collection[str]) -> dict[str, str]:
        """Document → title; empty where it has none."""
        unknown = [name for name in names if name not in self._titles]
        if unknown:
            titles = read_titles(self._documents, unknown)
            self._titles |= {name: titles.get(name, "") for name in unknown}
        return {name: self._titles[name] for name in names}


def describe_query(
    before: Explanation, after: Explanation, dataset: Dataset, known_titles: KnownTitles
) -> dict[str, Any]:
    """Both lists of a query, and the documents that moved.

    Args:
        before: The query under the baseline, or under the setting before.
        after: The query under the setting.
        dataset: Knows the texts of queries.
        known_titles: Knows the titles of documents.
    """
    lists = [_top(before), _top(after)]
    names = dict.fromkeys(trace.document for traces in lists for trace in traces)
    relevant = [trace for trace in after.traces if trace.grade and trace.grade > 0]
    names |= dict.fromkeys(trace.document for trace in relevant[:SHOWN])
    titles = known_titles.find_titles(names)
    known = dataset.queries.get(after.query)
    moves = [
        move for name in names if (move := _describe_move(name, titles, before, after)) is not None
    ]
    return {
        "query": after.query,
        "text": (known.text or "") if known is not None else "",
        "before": [asdict(_list_document(t, titles, after)) for t in lists[0]],
        "after": [asdict(_list_document(t, titles, before)) for t in lists[1]],
        "moves": [asdict(move) for move in sorted(moves, key=_sort_key)],
    }


def _top(explanation: Explanation) -> list[ScoreTrace]:
    return [trace for trace in explanation.traces if trace.rank is not None][:SHOWN]


def _list_document(trace: ScoreTrace, titles: dict[str, str], other: Explanation) -> ListedDocument:
    counterpart = other.find_trace(trace.document)
    return ListedDocument(
        document=trace.document,
        title=titles[trace.document],
        grade=trace.grade,
        rank=trace.rank or 0,
        other_rank=None if counterpart is None else counterpart.rank,
        score=trace.score,
        terms=dict(trace.contributions),
    )


def _describe_move(
    name: str, titles: dict[str, str], before: Explanation, after: Explanation
) -> Move | None:
    """The move of a document; None where it stands as before."""
    old, new = before.find_trace(name), after.find_trace(name)
    ranks = tuple(None if trace is None else trace.rank for trace in (old, new))
    if ranks[0] == ranks[1]:
        return None
    judged = new if new is not None else old
    return Move(
        document=name,
        title=titles[name],
        grade=None if judged is None else judged.grade,
        before=ranks[0],
        after=ranks[1],
        cause=explain_move(name, before, after),
    )


def _sort_key(move: Move) -> tuple[bool, int, str]:
    """Relevant documents first, then by the best rank before or after."""
    best = min(rank for rank in (move.before, move.after) if rank is not None)
    return not (move.grade and move.grade > 0), best, move.document
