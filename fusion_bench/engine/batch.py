"""Many fusions of one view: values per query, or the reason why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from fusion_bench.align import AlignedRuns
from fusion_bench.engine.count import Counter
from fusion_bench.engine.layout import Layout
from fusion_bench.engine.scoring import Scorer, scorer_class
from fusion_bench.fuse import Compiled, Fusion
from fusion_bench.measure import Measure
from fusion_bench.measure.engine import FORMULAS
from fusion_bench.measure.ranking import BoolArray, Ranking, Rows
from fusion_bench.order import FloatArray, IntArray

__all__ = ["Refusal", "evaluate"]

#: Measures that look at relevant documents only.
COUNTED: Final = frozenset({"nDCG", "RR", "R", "AP", "P", "Success"})


@dataclass(frozen=True)
class Refusal:
    """Why a fusion must go the plain way.

    Attributes:
        reason: A few words.
    """

    reason: str


#: Stands where values will be.
PENDING: Final = np.empty((0, 0))


def evaluate(
    fusions: Sequence[Fusion],
    runs: AlignedRuns,
    measures: Sequence[Measure],
    *,
    top_k: Sequence[int | None] | None = None,
) -> tuple[FloatArray | Refusal, ...]:
    """Evaluate fusions without a blend; the more at once, the faster each.

    Args:
        fusions: (T,).
        runs: A view of the sources that take part in each of them.
        measures: (M,).
        top_k: (T,) where each final list is cut; None = nowhere.

    Returns:
        For each fusion its (M, Q) values, to the last bit those of ``measure.evaluate`` after
        ``evaluate.rank``, or why they must be had from there.
    """
    refused = _refused(measures)
    if refused is not None:
        return (refused,) * len(fusions)
    found: list[FloatArray | Refusal] = []
    groups: dict[tuple[object, ...], list[tuple[int, Compiled]]] = {}
    for trial, fusion in enumerate(fusions):
        compiled = fusion.compiled(runs)
        refusal = _cannot(runs, fusion, compiled)
        found.append(refusal or PENDING)
        if compiled is not None and refusal is None:
            key = scorer_class(compiled).group(compiled)
            groups.setdefault(key, []).append((trial, compiled))
    cuts = top_k or [None] * len(fusions)
    cutoffs = [measure.cutoff for measure in measures]
    limit = None if None in cutoffs else max((c for c in cutoffs if c is not None), default=None)
    for members in groups.values():
        trials, forms = zip(*members, strict=True)
        scorer = scorer_class(forms[0])(runs, forms)
        most = _most([_least(cuts[trial], limit) for trial in trials])
        for trial, placed in zip(trials, _all_places(scorer, len(forms), most), strict=True):
            ranking = _Found(runs, scorer.layout, placed, _least(cuts[trial], limit))
            found[trial] = np.array([FORMULAS[m.kind](m, ranking) for m in measures])
    return tuple(found)


def _refused(measures: Sequence[Measure]) -> Refusal | None:
    for measure in measures:
        if measure.kind not in COUNTED or measure.judged_only:
            return Refusal(f"{measure.name} looks at more than the relevant documents")
    return None


def _cannot(runs: AlignedRuns, fusion: Fusion, compiled: Compiled | None) -> Refusal | None:
    if compiled is None:
        return Refusal(f"{fusion.method} has no form that can be counted")
    reason = scorer_class(compiled).refusal(runs, compiled)
    return None if reason is None else Refusal(reason)


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _most(limits: Sequence[int | None]) -> int | None:
    return None if None in limits else max(limit for limit in limits if limit is not None)


def _all_places(scorer: Scorer, trials: int, limit: int | None) -> Iterator[IntArray]:
    """(R,) of each trial up to the limit, a few trials at a time."""
    counter = Counter(scorer, limit)
    for start in range(0, trials, scorer.lanes):
        yield from counter.places(slice(start, min(start + scorer.lanes, trials)))


@dataclass(frozen=True, eq=False)
class _Rows(Rows):
    """Rows that remember their tops: most measures of a system share a cutoff."""

    tops: dict[int, Rows] = field(default_factory=dict)

    def where(self, keep: BoolArray) -> Rows:
        """Only the rows where ``keep``, shape (m,), is true."""
        index = np.flatnonzero(keep)
        return _Rows(self.query[index], self.position[index], self.grade[index])

    def top(self, cutoff: int | None) -> Rows:
        """Only the rows at the first ``cutoff`` positions; None = all."""
        if cutoff is None:
            return self
        if cutoff not in self.tops:
            self.tops[cutoff] = self.where(self.position <= cutoff)
        return self.tops[cutoff]


class _Found(Ranking):
    """A ranking of which only the relevant documents are placed."""

    def __init__(
        self, runs: AlignedRuns, layout: Layout, placed: IntArray, limit: int | None
    ) -> None:
        super().__init__(runs, placed, judged_only=False)
        near = None if limit is None else np.flatnonzero(placed <= limit)
        query, placed, grade = (
            column if near is None else column[near]
            for column in (layout.query, placed, layout.grade)
        )
        # A place never exceeds the number of candidates, so these numbers are distinct.
        order = np.argsort(runs.offsets[query] + placed)
        self._all = _Rows(query, placed[order], grade[order])

    def relevant(self, rel: int) -> Rows:
        """The returned documents of grade ``rel`` or better."""
        if rel == 1:
            return self._all
        if rel not in self._relevant:
            self._relevant[rel] = self._all.where(self._all.grade >= rel)
        return self._relevant[rel]
