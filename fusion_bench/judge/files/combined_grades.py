"""One grade of several people's, and qrels that a dataset reads."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from fusion_bench.data.qrels import Qrels
from fusion_bench.judge.files.judgment import Judgment
from fusion_bench.judge.pool.pool import Pair

CombineName: TypeAlias = Literal["majority", "mean", "first"]
COMBINE_NAMES: tuple[CombineName, ...] = get_args(CombineName)


def take_majority(grades: Sequence[int]) -> int:
    """The most frequent grade; of equally frequent ones the least, so that a tie is no gain."""
    return min(statistics.multimode(grades))


def take_mean(grades: Sequence[int]) -> int:
    """The mean, rounded; a half is rounded down."""
    whole, rest = divmod(sum(grades), len(grades))
    return whole + (2 * rest > len(grades))


def take_first(grades: Sequence[int]) -> int:
    """That of the first judge, by name."""
    return grades[0]


COMBINE: Mapping[CombineName, Callable[[Sequence[int]], int]] = {
    "majority": take_majority,
    "mean": take_mean,
    "first": take_first,
}


@dataclass(frozen=True)
class CombinedGrades:
    """One grade for each judged document.

    Attributes:
        grades: By query and document.
        several: Documents that more than one judge graded.
        disagreements: Those of them that have different grades.
    """

    grades: Mapping[Pair, int]
    several: int
    disagreements: int


def combine_grades(
    judges: Mapping[str, Iterable[Judgment]], how: CombineName = "majority"
) -> CombinedGrades:
    """Make one grade of each document's grades.

    Args:
        judges: The judgments of each judge, by name.
        how: ``majority``, ``mean`` or ``first``.
    """
    given: dict[Pair, list[int]] = {}
    for name in sorted(judges):
        for judgment in judges[name]:
            given.setdefault(judgment.pair, []).append(judgment.grade)
    several = [grades for grades in given.values() if len(grades) > 1]
    return CombinedGrades(
        {pair: COMBINE[how](grades) for pair, grades in given.items()},
        len(several),
        sum(len(set(grades)) > 1 for grades in several),
    )


@dataclass(frozen=True)
class MergedQrels:
    """Judgments of a dataset together with those of its judges.

    Attributes:
        qrels: All of them.
        added: Documents that were not judged before.
        changed: Documents whose grade is another one now.
    """

    qrels: Qrels
    added: int
    changed: int


def merge_qrels(qrels: Qrels, grades: Mapping[Pair, int]) -> MergedQrels:
    """Put grades into the judgments of a dataset; they replace what stands there.

    Args:
        qrels: The dataset's; queries without judgments stay.
        grades: By query and document; at least one where nothing is judged.
    """
    before = pair_grades(qrels)
    after = {**before, **grades}
    queries, documents = zip(*after, strict=True)
    return MergedQrels(
        Qrels.from_rows(queries, documents, list(after.values())).add_queries(qrels.queries),
        added=sum(pair not in before for pair in grades),
        changed=sum(pair in before and before[pair] != grade for pair, grade in grades.items()),
    )


def pair_grades(qrels: Qrels) -> dict[Pair, int]:
    """Query and document → grade."""
    nested = qrels.to_dict()
    return {(query, doc): grade for query, row in nested.items() for doc, grade in row.items()}
