"""Runs of the gate in which the truth is known: made from one check's differences, and judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.gate.check_statistics import Check
from fusion_bench.gate.power import RulePower, compute_power
from fusion_bench.gate.verdict import MIN_CHANGED, CheckStatus, decide_status
from fusion_bench.stats.corrections import adjust_holm
from fusion_bench.stats.intervals import t_quantile
from fusion_bench.stats.randomization_tests import randomization_p_values
from fusion_bench.stats.resampling import draw_groups, group_codes
from fusion_bench.util.formatting import pluralize

__all__ = [
    "RESAMPLES",
    "GroupedCheck",
    "adjust_runs",
    "decide_runs",
    "draw_label_swaps",
    "group_check",
    "resample_groups",
    "simulated_p_values",
    "untestable_reason",
]

#: Of the randomisation test in each run; the level of the test is exact for any number.
RESAMPLES = 2_000
#: Runs that share their signs.
RUNS_PER_BLOCK = 100


@dataclass(frozen=True, eq=False)
class GroupedCheck:
    """One check by group.

    Attributes:
        contest: The check.
        codes: Shape (G,): the collection's code of each group, shared by its slices.
        sums: Shape (G,): of the differences.
        sizes: Shape (G,): queries.
        powers: What the gate prints.
    """

    check: Check
    codes: IntArray
    sums: FloatArray
    sizes: FloatArray
    power: RulePower

    @property
    def name(self) -> str:
        """``collection / slice / measure``."""
        return self.check.name

    @property
    def centered_sums(self) -> FloatArray:
        """(G,): sums of differences whose mean is 0."""
        return self.sums - self.sizes * float(self.sums.sum() / self.sizes.sum())


def untestable_reason(contest: Check) -> str | None:
    """Why a check cannot be tried; None where it can."""
    if contest.error is not None:
        return contest.error
    changed = int((contest.difference != 0).sum())
    if changed < MIN_CHANGED:
        return (
            f"the two systems differ on {pluralize(changed, 'query')}, "
            f"and at least {MIN_CHANGED} "
            "are needed"
        )
    groups = len(np.unique(contest.groups))
    return None if groups > 1 else "one group, so nothing tells the spread"


def group_check(contest: Check, level: float, alpha: float, seed: int) -> GroupedCheck:
    """A check by group, with what the gate prints for it at this level of the test."""
    codes, count = group_codes(contest.groups, len(contest.groups))
    first = np.full(count, -1)
    first[codes[::-1]] = contest.groups[::-1]
    [found] = compute_power(
        contest.difference[None],
        contest.groups,
        [contest.max_drop],
        level=level,
        alpha=alpha,
        seed=seed + 1,
    )
    return GroupedCheck(
        check=contest,
        codes=first,
        sums=np.bincount(codes, weights=contest.difference, minlength=count).astype(np.float64),
        sizes=np.bincount(codes, minlength=count).astype(np.float64),
        power=found,
    )


def draw_label_swaps(checks: Sequence[GroupedCheck], runs: int, seed: int) -> dict[str, FloatArray]:
    """By collection ±1 of shape (runs, codes): a group is swapped in every slice, or in none."""
    collections = dict.fromkeys(check.check.collection for check in checks)
    found: dict[str, FloatArray] = {}
    for i, name in enumerate(collections):
        codes = max(int(c.codes.max()) for c in checks if c.check.collection == name) + 1
        drawn = np.random.Generator(np.random.PCG64([seed, i])).integers(0, 2, (runs, codes))
        found[name] = (2 * drawn - 1).astype(np.float64)
    return found


def resample_groups(
    check: GroupedCheck, drop: float, runs: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Sums and sizes of groups drawn with replacement, at a true mean of −drop, both (runs, G)."""
    blocks = draw_groups(len(check.sums), runs, seed)
    drawn = np.concatenate(list(blocks))
    sizes = check.sizes[drawn]
    return check.centered_sums[drawn] - drop * sizes, sizes


def simulated_p_values(sums: FloatArray, seed: int) -> FloatArray:
    """(runs,): p of each run by the gate's own test; a group is one unit.

    Runs come in parts with signs of their own: one set of 2,000 signs for all of them would shift
    the level of the test for all of them alike.
    """
    parts = np.array_split(sums, max(len(sums) // RUNS_PER_BLOCK, 1))
    return np.concatenate(
        [
            randomization_p_values(
                part, resamples=RESAMPLES, seed=seed + 1000 * i, alternative="less"
            )
            for i, part in enumerate(parts)
        ]
    )


def adjust_runs(p: FloatArray, family: int) -> FloatArray:
    """(C, runs) adjusted in each run; checks that cannot be tried take their place with p = 1."""
    filler = np.ones(family - len(p))
    columns = [adjust_holm(np.concatenate([column, filler]))[: len(p)] for column in p.T]
    return np.stack(columns, axis=1)


def decide_runs(
    sums: FloatArray, sizes: FloatArray, p_holm: FloatArray, max_drop: float, alpha: float
) -> list[CheckStatus]:
    """The gate's decision in every run."""
    groups, queries = sums.shape[1], sizes.sum(axis=1)
    means = sums.sum(axis=1) / queries
    residuals = sums - means[:, None] * sizes
    errors = np.sqrt(groups / (groups - 1) * (residuals**2).sum(axis=1)) / queries
    lows = means - t_quantile(groups - 1, 1 - alpha) * errors
    return [
        decide_status(
            mean=mean, lower_bound=low, p_holm=p, changed=int(count), max_drop=max_drop, alpha=alpha
        )
        for mean, low, p, count in zip(
            means.tolist(), lows.tolist(), p_holm.tolist(), queries, strict=True
        )
    ]
