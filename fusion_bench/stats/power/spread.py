"""How much the differences of two systems vary: estimated, or assumed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.stats.intervals import POWER, estimate_mean
from fusion_bench.stats.power.sample_size import SampleSize, estimate_kurtosis, needed_queries
from fusion_bench.stats.resampling import group_codes


@dataclass(frozen=True)
class Spread:
    """How much the differences of two systems vary from query to query.

    Attributes:
        sd: Standard deviation over queries.
        queries: Q; None = the standard deviation is assumed, and no queries are at hand.
        design_effect: Variance of the mean by group ÷ by query; 1 without groups.
        freedom: Degrees of freedom of the standard error; None without queries.
        changed: Queries with a difference; None where the standard deviation is assumed.
        kurtosis: μ₄ ÷ σ⁴ of the differences, or of their sums by group; None where the standard
            deviation is assumed, or nothing tells the kurtosis.
        groups: Groups of the queries; None without.
    """

    sd: float
    queries: int | None = None
    design_effect: float = 1.0
    freedom: float | None = None
    changed: int | None = None
    kurtosis: float | None = None
    groups: int | None = None

    @property
    def standard_error(self) -> float | None:
        """Of the mean difference over the queries at hand; None without queries."""
        if self.queries is None:
            return None
        return self.sd * math.sqrt(self.design_effect / self.queries)

    def needed_queries(
        self, difference: float, critical: float | None, *, power: float = POWER
    ) -> SampleSize | None:
        """Queries at which a true difference exceeds the critical value; see ``sample_size``.

        Args:
            difference: True difference.
            critical: At the queries at hand; at infinitely many where the spread is assumed.
            power: Above .5 and below 1.
        """
        return needed_queries(
            difference,
            self.sd,
            queries=None if self.changed is None else self.queries,
            changed=self.changed or 0,
            kurtosis=self.kurtosis,
            critical=critical,
            power=power,
            design_effect=self.design_effect,
            freedom=self.freedom,
            groups=self.groups,
        )


def estimate_spread(differences: FloatArray, groups: IntArray | None = None) -> Spread:
    """The spread of paired differences.

    Args:
        differences: Shape (Q,), finite.
        groups: Shape (Q,), integer codes; None = every query alone.
    """
    mean = estimate_mean(differences, groups)
    changed = int((differences != 0).sum())
    spread = Spread(mean.sd, mean.queries, 1.0, mean.freedom, changed)
    if groups is None or mean.groups == mean.queries or not mean.sd > 0:
        return replace(spread, kurtosis=estimate_kurtosis(differences))
    effect = (mean.standard_error / mean.sd) ** 2 * mean.queries
    codes, _ = group_codes(groups, mean.queries)
    sums = np.bincount(codes, weights=differences - mean.mean).astype(np.float64)
    return replace(
        spread, design_effect=effect, kurtosis=estimate_kurtosis(sums), groups=mean.groups
    )


def assume_spread(
    sd: float,
    queries: int | None = None,
    groups: int | None = None,
    design_effect: float | None = None,
) -> Spread:
    """A spread that is assumed.

    Args:
        sd: Standard deviation of the differences over queries.
        queries: Queries at hand; None = none.
        groups: Groups among these queries, of equal size; None = every query alone.
        design_effect: None = the worst that groups can do, queries ÷ groups: a group says no
            more than one query.

    Raises:
        ConfigError: A number out of its range, or groups without queries.
    """
    if not (sd > 0 and math.isfinite(sd)):
        raise ConfigError(f"sd: must be above 0, not {sd}")
    if queries is not None and queries < 2:
        raise ConfigError(f"queries: at least 2 are needed, not {queries}")
    if groups is not None and queries is None:
        raise ConfigError("groups: the number of queries is needed too")
    if groups is not None and queries is not None and not 2 <= groups <= queries:
        raise ConfigError(f"groups: from 2 to the number of queries, {queries}, not {groups}")
    effect = design_effect
    if effect is None:
        effect = 1.0 if groups is None or queries is None else queries / groups
    if not (effect > 0 and math.isfinite(effect)):
        raise ConfigError(f"design_effect: must be above 0, not {effect}")
    if queries is None:
        return Spread(sd, design_effect=effect)
    freedom = queries / effect - 1 if groups is None else groups - 1
    return Spread(sd, queries, effect, max(freedom, 1.0), groups=groups)
