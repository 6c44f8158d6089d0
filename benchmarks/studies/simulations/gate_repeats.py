"""The gate on systems with repeats: alarms without a drop, and passes at a drop of m."""

from __future__ import annotations

import numpy as np
from fusion_bench.gate.estimates import CheckRepeats, estimate_check

from benchmarks.studies.simulations.promise import Promise, Side
from fusion_bench.data.ordering import FloatArray
from fusion_bench.gate.verdict import ALARMS, ALPHA, CheckStatus, decide_status
from fusion_bench.stats.corrections import randomization_p_values
from fusion_bench.util.formatting import pluralize

TITLE = "The gate: repeated trials"
DESCRIPTION = """
A baseline and a candidate on 200 queries. Values have standard deviation .3 over queries, which
both share but for .1, and .15 from trial to trial on one query. Each trial moves all queries of
its system by a normal number of the stated standard deviation. m = .02. Promised: without a true
drop, an alarm in at most 5 % of the runs; at a true drop of m, a pass in at most 5 %. Of one trial
against one nothing is promised where trials have an effect: the gate cannot see it. 1,000 flips.
"""
DRAWS = 2_000
QUERIES, MAX_DROP, FLIPS = 200, 0.02, 1_000
QUERY_SD, SYSTEM_SD, RESIDUAL_SD = 0.3, 0.1, 0.15
REPEAT_SDS = (0.0, 0.01, 0.02, 0.05)
TRIALS = ((3, 3), (3, 1), (1, 1))


def run(*, draws: int) -> list[Promise]:
    """Every effect of repeats and every number of them."""
    results = []
    for trial_sd in REPEAT_SDS:
        for counts in TRIALS:
            rng = np.random.default_rng([int(1000 * trial_sd), *counts])
            alarms = passes = 0
            for seed in range(draws):
                sides = [draw_side(rng, count, trial_sd) for count in counts]
                shared = QUERY_SD * rng.standard_normal(QUERIES)
                before, after = (shared + each for each in sides)
                alarms += decide(before, after, seed) in ALARMS
                passes += decide(before, after - MAX_DROP, seed) == "pass"
            design = (
                f"sd of trials {trial_sd:g}, {pluralize(counts[0], 'trial')} against {counts[1]}"
            )
            is_promised = max(counts) > 1 or not trial_sd
            limit = 0.05 if is_promised else None
            side: Side = "at most" if is_promised else "none"
            results += [
                Promise(design, "alarm without a drop", alarms, draws, limit, side),
                Promise(design, "pass at a drop of m", passes, draws, limit, side),
            ]
    return results


def draw_side(rng: np.random.Generator, repeats: int, trial_sd: float) -> FloatArray:
    """(T, Q): what a system's values have beside those that both systems share."""
    alone = SYSTEM_SD * rng.standard_normal(QUERIES)
    moved = trial_sd * rng.standard_normal((repeats, 1))
    return alone + moved + RESIDUAL_SD * rng.standard_normal((repeats, QUERIES))


def decide(before: FloatArray, after: FloatArray, seed: int) -> CheckStatus:
    """The status of one check."""
    groups = np.arange(QUERIES)
    difference = after.mean(axis=0) - before.mean(axis=0)
    sides = [side if len(side) > 1 else None for side in (before, after)]
    terms = CheckRepeats(sides[0], sides[1], borrows=True).make_terms(groups)
    estimates = estimate_check(difference, groups, terms, max_drop=MAX_DROP, alpha=ALPHA)
    p = randomization_p_values(
        difference[None], groups, resamples=FLIPS, seed=seed, alternative="less"
    )
    return decide_status(
        changed=QUERIES,
        mean=estimates.estimate.mean,
        max_drop=MAX_DROP,
        t_bound=estimates.estimate.low,
        betting_bound=estimates.betting_bound,
        p_fell=max(float(p[0]), estimates.p_at_zero),
        p_regressed=estimates.p_regressed,
    )
