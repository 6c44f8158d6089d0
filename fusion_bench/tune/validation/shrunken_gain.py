"""The gain that tuned parameters may be expected to keep: the held-out one, shrunken."""

from __future__ import annotations

import math

from fusion_bench.report.tuning_records.trials import Gain, ShrunkenGain
from fusion_bench.tune.validation.trial_selection import PRIOR_WEIGHT


def shrink_gain(tuning: Gain | None, held_out: Gain) -> ShrunkenGain | None:
    """The posterior mean of the true gain, after the tuning and the held-out queries.

    A gain is reported after it passed a test. Where the power is low, such gains are about twice
    the true one (Gelman & Carlin 2014, "Beyond power calculations: assessing type S and type M
    errors"; van Zwet & Cator 2021, "The significance filter, the winner's curse and the need to
    shrink"). The prior is normal, and is that of the selection rule after the tuning queries: ten
    queries (or groups) that lose one standard deviation each, and the G tuning queries with mean t
    and standard deviation s. So its mean is (G·t − 10·s) / (G + 10) and its standard deviation
    s / √(G + 10). Held out, the mean is d with standard error e:

        shrunken = (prior mean / prior sd² + d / e²) / (1 / prior sd² + 1 / e²)

    Source: conjugate normal prior, Gelman et al., "Bayesian Data Analysis", section 2.5.

    Args:
        tuning: On the tuning queries; None = they are the held-out ones (cross-fitting), so that
            the prior is the ten queries alone, with the held-out standard deviation.
        held_out: On the held-out queries.

    Returns:
        None where a spread is not known.
    """
    spread, error = (_standard_error(gain) for gain in (tuning or held_out, held_out))
    if not (spread > 0 and error > 0):  # written so that NaN ends here too
        return None
    sd = spread * math.sqrt((tuning or held_out).groups)
    groups, difference = (0, 0.0) if tuning is None else (tuning.groups, tuning.difference)
    mean = (groups * difference - PRIOR_WEIGHT * sd) / (groups + PRIOR_WEIGHT)
    prior_sd = sd / math.sqrt(groups + PRIOR_WEIGHT)
    weight = prior_sd**2 / (prior_sd**2 + error**2)
    return ShrunkenGain(
        difference=mean + weight * (held_out.difference - mean),
        prior_mean=mean,
        prior_sd=prior_sd,
        weight=weight,
    )


def _standard_error(gain: Gain) -> float:
    return math.nan if gain.sd is None else gain.sd / math.sqrt(gain.queries)
