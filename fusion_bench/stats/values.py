"""Values by query: a table of systems × measures of one collection, and pairs of its systems.

Commands that compare systems take pairs, and differ only in the rule by which they decide on them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Self

import numpy as np

from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean, paired_difference
from fusion_bench.stats.repeat_variance import RepeatMeans, repeat_means, widen_estimate
from fusion_bench.stats.unjudged import (
    JudgmentKind,
    QueryBounds,
    UnjudgedDifference,
    UnjudgedEvidence,
    compare_unjudged,
)


@dataclass(frozen=True, eq=False)
class MeasuredValues:
    """Values of one system on one measure.

    Attributes:
        values: Shape (Q,): the means over the repeats of its lists.
        repeats: Shape (T, Q): the values of each repeat; None = there is one.
        lists: The lists that differ between the repeats; see :attr:`Pair.is_paired`.
        unjudged: What unjudged documents could change in a comparison; None = nothing, or not
            known.
        bounds: What they could make of the values; None likewise.
    """

    values: FloatArray
    repeats: FloatArray | None = None
    lists: frozenset[str] = frozenset()
    unjudged: UnjudgedEvidence | None = None
    bounds: QueryBounds | None = None

    @property
    def count(self) -> int:
        """T."""
        return 1 if self.repeats is None else len(self.repeats)

    def select_queries(self, keep: BoolArray | IntArray) -> Self:
        """Only the queries where ``keep``, shape (Q,), is true, or the ones at these indices."""
        return replace(
            self,
            values=self.values[keep],
            repeats=None if self.repeats is None else self.repeats[:, keep],
            unjudged=self.unjudged and self.unjudged.select_queries(keep),
            bounds=self.bounds and self.bounds.select_queries(keep),
        )


@dataclass(frozen=True, eq=False)
class Pair:
    """A candidate and a baseline on one measure and the same queries.

    Attributes:
        candidate: Values of the candidate.
        baseline: Values of the system that it is compared with.
        keys: Shape (Q,): the group id of each query; its own id without groups.
        names: Names of the candidate and of the baseline.
        measure: Name of the measure.
        is_bounded: Values lie in [0, 1], so that no interval of a difference goes beyond ±1.
        kind: What the judgments say of unjudged documents.
        borrows: A side of one repeat varies as much as the other side; by default it counts as
            fixed.
    """

    candidate: MeasuredValues
    baseline: MeasuredValues
    keys: tuple[str, ...]
    names: tuple[str, str] = ("candidate", "baseline")
    measure: str = ""
    is_bounded: bool = False
    kind: JudgmentKind = "complete"
    borrows: bool = False

    @classmethod
    def from_arrays(
        cls,
        candidate: FloatArray,
        baseline: FloatArray | None = None,
        keys: Sequence[str] | None = None,
        *,
        measure: str = "",
        is_bounded: bool = False,
    ) -> Pair:
        """Pair two systems of one repeat each, or differences with zeros.

        Args:
            candidate: Shape (Q,).
            baseline: Shape (Q,); None = 0.
            keys: Shape (Q,); None = every query is its own group.
            measure: Name of the measure.
            is_bounded: Values lie in [0, 1].
        """
        return cls(
            MeasuredValues(candidate),
            MeasuredValues(np.zeros(len(candidate)) if baseline is None else baseline),
            tuple(map(str, range(len(candidate))) if keys is None else keys),
            measure=measure,
            is_bounded=is_bounded,
        )

    @cached_property
    def difference(self) -> FloatArray:
        """(Q,): candidate − baseline, float noise set to 0."""
        return paired_difference(self.candidate.values, self.baseline.values)

    @property
    def wins(self) -> int:
        """Queries on which the candidate is better."""
        return int((self.difference > 0).sum())

    @property
    def losses(self) -> int:
        """Queries on which the baseline is better."""
        return int((self.difference < 0).sum())

    @property
    def changed(self) -> int:
        """Queries whose value differs."""
        return int(np.count_nonzero(self.difference))

    @property
    def groups(self) -> IntArray:
        """(Q,): codes of the groups."""
        return number_by_appearance(self.keys)[0]

    @property
    def counts(self) -> tuple[int, int]:
        """Repeats of the candidate and of the baseline."""
        return self.candidate.count, self.baseline.count

    @property
    def is_paired(self) -> bool:
        """Whether both sides move together, as they read the same repeats of one list.

        Repeat t of the one was made from what repeat t of the other was made from. Then only their
        differences, repeat by repeat, are independent of each other (paired replicates; Brennan
        2001, "Generalizability Theory", chapter 4: an effect common to both cancels).
        """
        first, second = self.counts
        return first == second > 1 and not self.candidate.lists.isdisjoint(self.baseline.lists)

    @property
    def is_borrowed(self) -> bool:
        """Whether a side of one repeat counts as unsteady as the other."""
        return self.borrows and min(self.counts) == 1 < max(self.counts)

    @cached_property
    def repeats(self) -> RepeatMeans:
        """The means over queries of each repeat, of each side of the difference that has several.

        With T repeats of variance B on the other side, a borrowing side adds B to the B/T of that
        side. So these means lie √(T + 1) times as far apart.
        """
        first, second = self.candidate.repeats, self.baseline.repeats
        if self.is_paired and first is not None and second is not None:
            return repeat_means([first - second])
        means = repeat_means([first, second])
        if not self.is_borrowed:
            return means
        return tuple(
            each.mean() + math.sqrt(len(each) + 1) * (each - each.mean()) for each in means
        )

    def estimate(self, alpha: float) -> MeanEstimate:
        """The mean difference with Student's interval, not adjusted for further comparisons.

        Args:
            alpha: 1 − coverage.
        """
        estimate = estimate_mean(self.difference, self.groups, alpha=alpha)
        estimate = widen_estimate(estimate, self.repeats, alpha=alpha)
        return estimate.clip(-1.0, 1.0) if self.is_bounded else estimate

    def compare_unjudged(self, alpha: float) -> UnjudgedDifference | None:
        """What unjudged documents could change in the difference; None = nothing, or not known.

        Args:
            alpha: 1 − coverage of the interval.
        """
        first, second = self.candidate.unjudged, self.baseline.unjudged
        if self.kind == "complete" or first is None or second is None:
            return None
        return compare_unjudged(
            *(first, second),
            groups=self.groups,
            alpha=alpha,
            kind=self.kind,
            is_bounded=self.is_bounded,
        )

    def select_queries(self, keep: BoolArray) -> Pair:
        """Only the queries where ``keep``, shape (Q,), is true."""
        return replace(
            self,
            candidate=self.candidate.select_queries(keep),
            baseline=self.baseline.select_queries(keep),
            keys=tuple(compress(self.keys, keep.tolist())),
        )


@dataclass(frozen=True, eq=False)
class ValueTable:
    """Systems × measures on the queries of one collection.

    Attributes:
        systems: Values by name of the system and by measure.
        baseline: Name of the system that the others are compared with.
        measures: Names, the primary one first.
        keys: Shape (Q,): the group id of each query; its own id without groups.
        bounded: The measures whose values lie in [0, 1].
        kind: What the judgments say of unjudged documents.
    """

    systems: Mapping[str, Mapping[str, MeasuredValues]]
    baseline: str
    measures: tuple[str, ...]
    keys: tuple[str, ...]
    bounded: Collection[str] = ()
    kind: JudgmentKind = "complete"

    def values_of(self, measure: str) -> dict[str, MeasuredValues]:
        """The values of every system on one measure."""
        return {name: values[measure] for name, values in self.systems.items()}

    def pair(self, candidate: str, measure: str, baseline: str | None = None) -> Pair:
        """Two systems on one measure.

        Args:
            candidate: Name of a system.
            measure: Name of a measure.
            baseline: Name of a system; None = the baseline.

        Raises:
            ConfigError: A system lacks the measure.
        """
        names = candidate, self.baseline if baseline is None else baseline
        for name in names:
            if measure not in self.systems[name]:
                raise ConfigError(
                    f"system {name!r} has no measure {measure!r}: run the experiment again"
                )
        first, second = (self.systems[name][measure] for name in names)
        is_bounded = measure in self.bounded
        return Pair(first, second, self.keys, names, measure, is_bounded, self.kind)

    def pairs(self, measure: str) -> list[Pair]:
        """Every other system against the baseline."""
        return [self.pair(name, measure) for name in self.systems if name != self.baseline]
