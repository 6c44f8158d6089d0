"""The grades: pools to judge, qrels, and how far two readers agree.

``judgments.jsonl`` holds one line a judged pair: ``query``, ``document``, ``grade``, and for the
tenth that was read twice ``second`` and, where the two differ, ``settled`` with a ``reason``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fusion_bench.models.retrieval import Ranking

#: So many documents of each source and system are judged for each question.
POOL_DEPTH = 5
GRADES = (0, 1, 2, 3)
#: From this grade a document counts as relevant.
RELEVANT = 2
SALT = "fusion-bench/referee/judgments"


@dataclass(frozen=True)
class Judgment:
    """One judged pair; ``grade`` is what counts, after two differing readers were settled."""

    query: str
    document: str
    first: int
    second: int | None = None
    settled: int | None = None
    reason: str = ""

    @property
    def grade(self) -> int:
        """The settled grade where there is one, else the first."""
        return self.first if self.settled is None else self.settled


def pool_documents(lists: Iterable[Mapping[str, Ranking]], query: str) -> list[str]:
    """The documents to judge for a query, in an order that says nothing about their ranks."""
    found = {document for run in lists for document, _ in run.get(query, [])[:POOL_DEPTH]}
    return sorted(found, key=lambda name: _digest(f"{query}/{name}"))


def is_read_twice(query: str, document: str) -> bool:
    """Whether the pair belongs to the random tenth that two readers grade."""
    return int(_digest(f"twice/{query}/{document}"), 16) % 10 == 0


def _digest(text: str) -> str:
    return hashlib.sha256(f"{SALT}:{text}".encode()).hexdigest()


def read_judgments(path: Path) -> list[Judgment]:
    """All judged pairs.

    Raises:
        SystemExit: A grade outside the scale, a pair that is there twice, or two readers who
            differ and were not settled.
    """
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    made = [
        Judgment(
            row["query"],
            row["document"],
            row["grade"],
            row.get("second"),
            row.get("settled"),
            row.get("reason", ""),
        )
        for row in rows
    ]
    for each in made:
        given = [grade for grade in (each.first, each.second, each.settled) if grade is not None]
        if any(grade not in GRADES for grade in given):
            raise SystemExit(f"{each}: a grade must be one of {GRADES}")
        if each.second not in (None, each.first) and (each.settled is None or not each.reason):
            raise SystemExit(f"{each}: two readers differ: settle it, with a reason")
    if len({(each.query, each.document) for each in made}) != len(made):
        raise SystemExit(f"{path}: a pair is there twice")
    return made


def qrels_lines(judgments: Iterable[Judgment]) -> Iterator[str]:
    """TREC qrels: ``query 0 document grade``."""
    for each in sorted(judgments, key=lambda each: (each.query, each.document)):
        yield f"{each.query} 0 {each.document} {each.grade}"


def cohens_kappa(pairs: Iterable[tuple[int, int]], *, is_weighted: bool = False) -> float:
    """Agreement beyond chance of two readers (Cohen 1960; 1968 with linear weights).

    Args:
        pairs: The two grades of each pair.
        is_weighted: Whether a difference of one counts less than one of three.
    """
    table = np.zeros((len(GRADES), len(GRADES)))
    for first, second in pairs:
        table[first, second] += 1
    table /= table.sum()
    distance = np.abs(np.subtract.outer(GRADES, GRADES)).astype(float)
    cost = distance if is_weighted else (distance > 0).astype(float)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    return float(1 - (cost * table).sum() / (cost * expected).sum())
