"""The trials of a baseline and of a candidate on one check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.stats.trials.paired_trials import paired_sides
from fusion_bench.stats.trials.trial_variance import TrialTerm, make_trial_terms

#: The trials of a side that are compared one by one.
MOST_SINGLE = 10


@dataclass(frozen=True, eq=False)
class CheckTrials:
    """The values of each trial on the queries of one check; a side of None has one trial.

    Attributes:
        baseline: Shape (T, Q).
        candidate: Shape (T, Q), with its own T.
        is_shared: Both sides read the same trials of one list, so that they move together.
        borrows: The side of one trial reads a list that has several on the other side: it is as
            unsteady as that side. Otherwise a side of one trial counts as fixed.
    """

    baseline: FloatArray | None
    candidate: FloatArray | None
    is_shared: bool = False
    borrows: bool = False

    @property
    def is_paired(self) -> bool:
        """Whether trial t of the one side belongs to trial t of the other."""
        return self.is_shared and len(self.sides) == 1

    @property
    def sides(self) -> tuple[FloatArray | None, ...]:
        """What the variance of the difference depends on."""
        return paired_sides(self.candidate, self.baseline, is_shared=self.is_shared)

    def make_terms(self, groups: IntArray) -> tuple[TrialTerm, ...]:
        """What the trials add to the variance of the difference; ``groups`` has shape (Q,)."""
        return make_trial_terms(self.sides, groups, borrow=self.borrows)

    def single_differences(self, means: tuple[FloatArray, FloatArray]) -> FloatArray:
        """Candidate − baseline of single trials, shape (pairs, Q).

        Of trials that belong together each pair, otherwise every pair of the first ten.

        Args:
            means: The baseline's and the candidate's values, for a side of one trial.
        """
        before, after = (
            mean[None] if side is None else side[:MOST_SINGLE]
            for side, mean in zip((self.baseline, self.candidate), means, strict=True)
        )
        if self.is_paired:
            return after - before
        return np.stack([new - old for old, new in product(before, after)])


@dataclass(frozen=True, eq=False)
class PairedTrials:
    """The trials of a baseline and of a candidate on one collection.

    Attributes:
        baseline: By measure, shape (T, Q); a measure without trials is left out.
        candidate: Likewise.
        is_shared: See :class:`CheckTrials`.
        borrows: See :class:`CheckTrials`.
    """

    baseline: Mapping[str, FloatArray]
    candidate: Mapping[str, FloatArray]
    is_shared: bool
    borrows: bool

    def select(self, measure: str, keep: BoolArray) -> CheckTrials | None:
        """The trials of one measure on the queries to keep, (Q,); None = there is one a side."""
        before, after = (
            None if values is None else values[:, keep]
            for values in (self.baseline.get(measure), self.candidate.get(measure))
        )
        if before is None and after is None:
            return None
        return CheckTrials(before, after, self.is_shared, self.borrows)

    def find_worst_trial(self, measure: str, query: int) -> int:
        """The candidate's trial in which a query lost most, from 0; 0 where it has one.

        Args:
            measure: The measure.
            query: The row of the query.
        """
        after = self.candidate.get(measure)
        if after is None:
            return 0
        before = self.baseline.get(measure)
        lost = after[:, query]
        if self.is_shared and before is not None and len(before) == len(after):
            lost = lost - before[:, query]
        return int(np.argmin(lost))
