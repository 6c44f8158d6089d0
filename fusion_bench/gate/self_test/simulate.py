"""Simulated runs of the gate with a known truth, made from the differences of one check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import DataError
from fusion_bench.gate.checks import Check
from fusion_bench.gate.power.rule_power import RulePower, compute_power
from fusion_bench.gate.verdict import ALPHA, CheckStatus, decide_status
from fusion_bench.stats.betting_bound import log_capital, log_returns
from fusion_bench.stats.cluster_variance import bell_mccaffrey_freedom, cr2_standard_error
from fusion_bench.stats.intervals import t_quantile
from fusion_bench.stats.randomization_tests import adjust_holm, randomization_p_values
from fusion_bench.stats.resampling import draw_groups, group_codes
from fusion_bench.util.formatting import pluralize

#: Resamples of the randomization test in each run; its level is exact for any number.
RESAMPLES = 2_000
#: Fewer changed queries are no distribution to draw from.
MIN_CHANGED = 10
#: Runs that share their signs.
RUNS_PER_BLOCK = 100


@dataclass(frozen=True, eq=False)
class GroupedCheck:
    """A check summed by group.

    Attributes:
        check: The check.
        codes: Shape (G,): the collection's code of each group, shared by its slices.
        sums: Shape (G,): sums of the differences.
        sizes: Shape (G,): numbers of queries.
        power: The power that the gate states.
    """

    check: Check
    codes: IntArray
    sums: FloatArray
    sizes: FloatArray
    power: RulePower


def group_check(check: Check, level: float, seed: int) -> GroupedCheck:
    """Sum a check by group, and compute its power at this level of the test.

    Raises:
        DataError: The check cannot be simulated.
    """
    if check.error is not None:
        raise DataError(check.error)
    changed = int((check.difference != 0).sum())
    if changed < MIN_CHANGED:
        raise DataError(
            f"the two systems differ on {pluralize(changed, 'query')}, and at least {MIN_CHANGED} "
            "are needed"
        )
    codes, count = group_codes(check.groups, len(check.groups))
    first = np.full(count, -1)
    first[codes[::-1]] = check.groups[::-1]
    [power] = compute_power(
        check.difference[None], check.groups, [check.max_drop], level=level, seed=seed + 1
    )
    if power.min_detectable_drop is None:
        raise DataError(f"{pluralize(count, 'group')}: too few for the test to reject")
    return GroupedCheck(
        check=check,
        codes=first,
        sums=np.bincount(codes, weights=check.difference, minlength=count).astype(np.float64),
        sizes=np.bincount(codes, minlength=count).astype(np.float64),
        power=power,
    )


def draw_label_swaps(checks: Sequence[GroupedCheck], runs: int, seed: int) -> dict[str, FloatArray]:
    """By collection ±1 of shape (runs, codes), so that all slices swap a group alike."""
    collections = dict.fromkeys(check.check.collection for check in checks)
    signs: dict[str, FloatArray] = {}
    for i, name in enumerate(collections):
        codes = max(int(c.codes.max()) for c in checks if c.check.collection == name) + 1
        drawn = np.random.Generator(np.random.PCG64([seed, i])).integers(0, 2, (runs, codes))
        signs[name] = (2 * drawn - 1).astype(np.float64)
    return signs


def resample_groups(
    check: GroupedCheck, drop: float, runs: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Draw groups with replacement at a true mean of −drop: sums and sizes, both (runs, G)."""
    drawn = np.concatenate(list(draw_groups(len(check.sums), runs, seed)))
    sizes = check.sizes[drawn]
    centered = check.sums - check.sizes * float(check.sums.sum() / check.sizes.sum())
    return centered[drawn] - drop * sizes, sizes


def simulated_p_values(sums: FloatArray, seed: int) -> FloatArray:
    """(runs,): p of each run by the gate's test; a group is one unit.

    Blocks of runs have different random signs: the same 2,000 signs for all runs would shift the
    level of the test in all of them alike.
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
    """(C, runs): p adjusted in each run; checks that are not simulated count with p = 1."""
    filler = np.ones(family - len(p))
    columns = [adjust_holm(np.concatenate([column, filler]))[: len(p)] for column in p.T]
    return np.stack(columns, axis=1)


def decide_runs(
    sums: FloatArray, sizes: FloatArray, p_holm: FloatArray, max_drop: float
) -> list[CheckStatus]:
    """The status of a check in every run; ``fell`` stands for both alarms."""
    freedom = bell_mccaffrey_freedom(sizes[0].astype(np.int64))
    quantile = t_quantile(freedom, 1 - ALPHA)
    statuses: list[CheckStatus] = []
    for row, size, p in zip(sums, sizes, p_holm.tolist(), strict=True):
        queries, mean_size = size.sum(), size.mean()
        mean = float(row.sum() / queries)
        residuals = row - mean * size
        error = float(cr2_standard_error(residuals, size.astype(np.int64)))
        reach = float(size.max() / mean_size)
        returns = log_returns(row / mean_size, reach, -max_drop).sum(axis=0)
        has_capital = float(log_capital(returns)) >= -np.log(ALPHA)
        status = decide_status(
            changed=int(np.count_nonzero(row)),
            mean=mean,
            max_drop=max_drop,
            t_bound=mean - quantile * error,
            betting_bound=mean if has_capital else -np.inf,
            p_fell=p,
            p_regressed=1.0,
        )
        statuses.append(status)
    return statuses
