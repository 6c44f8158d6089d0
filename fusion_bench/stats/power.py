"""The minimum detectable difference."""

from __future__ import annotations

from fusion_bench.errors import ConfigError
from fusion_bench.stats.intervals import MeanEstimate, check_alpha, t_quantile


def minimum_detectable_difference(
    estimate: MeanEstimate, *, alpha: float = 0.05, power: float = 0.8
) -> float | None:
    """True mean that a two-sided test at ``alpha`` detects with ``power``.

    (t_{1−α/2} + t_power) × standard error, quantiles at G−1 degrees of freedom (Bloom 1995,
    "Minimum Detectable Effects"). None where no spread is known: a standard
    error of 0, or one group.
    """
    check_alpha(alpha)
    if not 0.5 <= power < 1:
        raise ConfigError(f"power: must be in [0.5, 1), not {power}")
    if not estimate.standard_error > 0:  # written so that NaN ends here too
        return None
    freedom = estimate.groups - 1
    factor = t_quantile(freedom, 1 - alpha / 2) + t_quantile(freedom, power)
    return factor * estimate.standard_error
