"""The decision of one ask of a campaign, from the differences per query alone.

Until the first ``ship`` every answer is ``keep``, so the candidates that a proposer asks about are
a sequence that does not depend on the held-out queries. A union bound over that fixed sequence
therefore holds for a proposer that adapts (Blum & Hardt 2015, "The Ladder: a reliable leaderboard
for machine learning competitions", section 3). After s − 1 ships the proposer also knows when they
came: at most C(K, s − 1) sequences, over which phase s divides its level once more.

An e-value has an expectation of at most 1 where the true mean is at most 0. So it reaches 1/share
with a probability of at most the share (Markov), whatever the skew of the differences. Here it is
the mean capital of the bets of ``stats.intervals`` against a mean of 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from fusion_bench.data.ordering import NOISE, FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.stats import intervals
from fusion_bench.stats.inference import MIN_CHANGED, MIN_UNITS
from fusion_bench.stats.power import detectable_difference

#: What bears the guarantee: the e-value with Student's t, or Student's t alone.
Tails = Literal["bounded", "t"]
#: A candidate with a greater one-sided p on the tuning queries is not tested.
SCREENING_P = 0.2
#: A campaign whose first phase finds only greater gains is refused.
MOST_GAIN = 0.05
#: The gain that is worth aiming at.
GOOD_GAIN = 0.03
#: Halvings of the interval that holds the detectable gain.
HALVINGS = 40


def phase_share(phase: int, *, ships: int, asks: int, level: float) -> float:
    """The one-sided level of one ask after ``phase`` − 1 ships.

    Phase s has level·2^−s, and the last phase the rest. C(asks, s − 1) is how many times of the
    earlier ships there could have been, which the proposer has learned.

    Args:
        phase: s, from 1 to ``ships``.
        ships: S, declared at the start.
        asks: K, declared at the start.
        level: α of the whole campaign, one-sided.

    Raises:
        ConfigError: A number out of its range.
    """
    if not 1 <= phase <= ships <= asks:
        raise ConfigError(
            f"phase {phase} of {ships} ships and {asks} asks: phase must be from 1 to the ships, "
            "and ships at most as many as asks"
        )
    if not 0 < level < 1:
        raise ConfigError(f"level: must be above 0 and below 1, not {level}")
    of_phase = level * 2.0 ** -min(phase, ships - 1)
    return of_phase / math.comb(asks, phase - 1) / asks


@dataclass(frozen=True)
class HeldOutTest:
    """What one ask finds on the held-out queries; only ``ships`` may be told.

    Attributes:
        mean: Mean difference, candidate − baseline.
        log_e_value: Natural logarithm of the e-value against a mean of at most 0; −∞ where
            differences can be below −1.
        critical_mean: Mean that Student's t asks for at the share, by group; NaN with one group.
        changed: Queries whose difference is not 0.
        groups: Groups; the queries where none are declared.
        share: Level of this ask, one-sided.
        min_gain: Least mean that is worth shipping.
        tails: What bears the guarantee.
    """

    mean: float
    log_e_value: float
    critical_mean: float
    changed: int
    groups: int
    share: float
    min_gain: float
    tails: Tails

    @property
    def ships(self) -> bool:
        """Whether the answer is ``ship``; every condition is looked at, and NaN is ``keep``."""
        return all(
            [
                self.tails == "t" or self.log_e_value >= -math.log(self.share),
                self.mean > self.critical_mean,
                self.mean >= self.min_gain,
                self.changed >= MIN_CHANGED,
                self.groups >= MIN_UNITS,
            ]
        )


def run_held_out_test(
    difference: FloatArray,
    groups: IntArray | None = None,
    *,
    share: float,
    min_gain: float,
    is_bounded: bool,
    tails: Tails = "bounded",
) -> HeldOutTest:
    """Test one candidate; the work is the same whatever comes of it.

    Args:
        difference: Shape (H,), finite: candidate − baseline of each held-out query.
        groups: Shape (H,), integer codes; None = every query is its own group.
        share: Level of this ask, see ``phase_share``.
        min_gain: Least mean that is worth shipping.
        is_bounded: Whether values of the measure are from 0 to 1.
        tails: ``bounded`` needs the e-value too, ``t`` does not.
    """
    estimate = intervals.estimate_mean(difference, groups)
    is_in_range = is_bounded and bool(difference.min() >= -1 - NOISE)
    values, reach = intervals.scale_groups(difference, groups)
    log_e_value = intervals.log_capital(intervals.log_returns(values, reach, 0.0).sum(axis=0))
    return HeldOutTest(
        mean=estimate.mean,
        log_e_value=float(log_e_value) if is_in_range else -math.inf,
        critical_mean=-intervals.t_quantile(estimate.freedom, share) * estimate.standard_error,
        changed=int(np.count_nonzero(np.abs(difference) > NOISE)),
        groups=estimate.groups,
        share=share,
        min_gain=min_gain,
        tails=tails,
    )


def is_screened(difference: FloatArray, groups: IntArray | None = None) -> bool:
    """Whether a candidate is kept untested: one-sided Student p > .2 on the tuning queries.

    Args:
        difference: Shape (Q,), finite: candidate − baseline of each tuning query.
        groups: Shape (Q,), integer codes; None = every query is its own group.
    """
    estimate = intervals.estimate_mean(difference, groups)
    least = intervals.t_quantile(estimate.freedom, 1 - SCREENING_P) * estimate.standard_error
    return not (estimate.mean > 0 and estimate.mean >= least)


def detectable_gain(
    difference: FloatArray,
    groups: IntArray | None = None,
    *,
    queries: int,
    count: int | None = None,
    share: float,
    tails: Tails = "bounded",
) -> float | None:
    """The smallest true mean gain that ships with probability .8.

    Differences like these, shifted to the gain, are drawn anew for the held-out queries. Then the
    logarithm of each bet's capital is a sum of independent terms, close to normal. As all bets win
    and lose together, the capital's lower quantile is taken as the mean of the bets' own. Student's
    t asks for the gain of its noncentral distribution; the greater of both counts.

    Args:
        difference: Shape (Q,): differences of another system on the tuning queries, or −sd and sd
            where only a standard deviation is known. Their mean does not count.
        groups: Shape (Q,), integer codes; None = every query is its own group.
        queries: Held-out queries.
        count: Held-out groups; None = as many as if they had the mean size of these.
        share: Level of the ask, see ``phase_share``.
        tails: ``bounded`` or ``t``, see ``run_held_out_test``.

    Returns:
        None where the differences have no spread, where fewer than 20 groups would be held out,
        and where no gain up to 1 is found so often.
    """
    values, reach = intervals.scale_groups(difference, groups)
    held_out = count or queries * len(values) / len(difference)
    if held_out < MIN_UNITS or len(values) < 2:
        return None
    estimate = intervals.estimate_mean(values)
    gain = detectable_difference(
        estimate.sd / math.sqrt(held_out),
        -intervals.t_quantile(held_out - 1, share),
        freedom=held_out - 1,
        power=intervals.POWER,
    )
    if gain is None or tails == "t":
        return gain
    by_bets = _gain_of_bets(values - estimate.mean, reach, held_out, share)
    return None if by_bets is None else max(gain, by_bets)


def _gain_of_bets(values: FloatArray, reach: float, count: float, share: float) -> float | None:
    """The smallest shift at which the capital's lower quantile reaches 1/share, by bisection.

    Args:
        values: Shape (G,), mean 0: see ``scale_groups``.
        reach: No difference of a group can be below −reach.
        count: Held-out groups.
        share: Level of the ask.
    """
    width, limit = NormalDist().inv_cdf(intervals.POWER) * math.sqrt(count), -math.log(share)

    def is_found(gain: float) -> bool:
        returns = intervals.log_returns(values + gain, reach, 0.0)
        quantiles = count * returns.mean(axis=0) - width * returns.std(axis=0)
        return float(intervals.log_capital(quantiles)) >= limit

    if not is_found(1.0):
        return None
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_found(middle) else (middle, high)
    return high
