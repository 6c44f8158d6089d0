"""The repeats of the two sides of a check."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.gate.verdict import CheckRepeatsResult
from fusion_bench.stats.repeat_variance import (
    RepeatMeans,
    paired_sides,
    repeat_means,
    repeat_variance,
)


@dataclass(frozen=True, eq=False)
class CheckRepeats:
    """The values of each repeat on the queries of one check; a side of None has one repeat.

    Attributes:
        baseline: Shape (T, Q).
        candidate: Shape (T, Q), with its own T.
        is_shared: Both sides read the same repeats of one list, so that they move together.
        borrows: The side of one repeat reads a list that has several on the other side: it is as
            unsteady as that side. Otherwise a side of one repeat counts as fixed.
    """

    baseline: FloatArray | None
    candidate: FloatArray | None
    is_shared: bool = False
    borrows: bool = False

    @property
    def is_borrowed(self) -> bool:
        """Whether a side of one repeat counts as unsteady as the other."""
        return self.borrows and (self.baseline is None) != (self.candidate is None)

    @property
    def means(self) -> RepeatMeans:
        """The mean over queries of each repeat, of each side of the difference that has several.

        With T repeats of variance B on the other side, a side of one repeat adds B to the B/T of
        that side. So these means lie √(T + 1) times as far apart.
        """
        sides = paired_sides(self.candidate, self.baseline, is_shared=self.is_shared)
        means = repeat_means(sides)
        if not self.is_borrowed:
            return means
        return tuple(
            each.mean() + math.sqrt(len(each) + 1) * (each - each.mean()) for each in means
        )

    def select_queries(self, keep: BoolArray) -> CheckRepeats:
        """Keep the queries where ``keep``, shape (Q,), is true."""
        return replace(
            self,
            baseline=None if self.baseline is None else self.baseline[:, keep],
            candidate=None if self.candidate is None else self.candidate[:, keep],
        )

    def find_worst_repeat(self, query: int) -> int:
        """The candidate's repeat in which a query lost most, from 0; 0 where it has one."""
        before, after = self.baseline, self.candidate
        if after is None:
            return 0
        lost = after[:, query]
        if self.is_shared and before is not None and len(before) == len(after):
            lost = lost - before[:, query]
        return int(np.argmin(lost))

    def describe(self, error: float) -> CheckRepeatsResult:
        """What a verdict says of them.

        Args:
            error: The standard error of the mean difference over queries.
        """
        added = repeat_variance(self.means)
        sides = (self.baseline, self.candidate)
        counts = [1 if side is None else len(side) for side in sides]
        spreads = [None if side is None else float(side.mean(axis=1).std(ddof=1)) for side in sides]
        return CheckRepeatsResult(
            baseline=counts[0],
            candidate=counts[1],
            baseline_sd=spreads[0],
            candidate_sd=spreads[1],
            share=added / (error**2 + added) if added > 0 else 0.0,
            is_paired=self.is_shared and counts[0] == counts[1],
            is_borrowed=self.is_borrowed,
        )
