"""How often the rule passes and alarms on a check whose trials add variance.

The t distribution stands for resampled queries, as those know nothing of trials.
"""

from __future__ import annotations

import math

from fusion_bench.gate.estimates import CheckEstimates
from fusion_bench.gate.power.rule_power import RulePower
from fusion_bench.stats.intervals import POWER, t_quantile
from fusion_bench.stats.power.sample_size import compute_power, detectable_difference, upper_tail


def compute_trial_power(
    estimates: CheckEstimates, max_drop: float, *, level: float, bound_level: float
) -> RulePower:
    """The power of the rule on one check.

    Args:
        estimates: The difference and its bounds, with what trials add.
        max_drop: m.
        level: Of the test of ``fell``, at the first step of Holm.
        bound_level: Of both lower bounds.
    """
    estimate = estimates.estimate
    error, freedom = estimate.standard_error, estimate.freedom
    if not error > 0:
        return RulePower()
    rejection, bound = (t_quantile(freedom, 1 - each) for each in (level, bound_level))
    # An alarm also needs a mean below −m, which half of the runs have at a drop of m.
    by_test = detectable_difference(error, rejection, freedom=freedom) or 0.0
    by_mean = max_drop + error * t_quantile(freedom, POWER)
    passes = bound_level
    if max_drop > 0:
        passes = compute_power(max_drop, error, bound, freedom=freedom)
    room = max_drop - (estimate.mean - estimates.betting_bound)
    by_bets = 0.0 if math.isnan(room) else upper_tail(-room / error, freedom)
    return RulePower(
        min_detectable_drop=max(by_test, by_mean),
        pass_rate=min(passes, by_bets),
        small_pass_rate=passes - min(passes, by_bets),
        alarm_rate=min(level, upper_tail(max_drop / error, freedom)),
        false_pass_rate=bound_level,
    )
