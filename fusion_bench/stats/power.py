"""The smallest difference that a test would have found."""

from __future__ import annotations

from fusion_bench.errors import ConfigError
from fusion_bench.stats.intervals import MeanEstimate, check_alpha, t_quantile

__all__ = ["minimum_detectable_difference"]


def minimum_detectable_difference(
    estimate: MeanEstimate, *, alpha: float = 0.05, power: float = 0.8
) -> float | None:
    """True mean that a two-sided test at ``alpha`` would have called different with ``power``.

    (t_{1−α/2} + t_power) × standard error, quantiles at G−1 degrees of freedom (Bloom 1995,
    "Minimum Detectable Effects"). None where there is no spread to judge by: a standard error of
    0, or one group.
    """
    check_alpha(alpha)
    if not 0.5 <= power < 1:
        raise ConfigError(f"power: must be in [0.5, 1), not {power}")
    if not estimate.standard_error > 0:  # written so that NaN ends here too
        return None
    freedom = estimate.groups - 1
    reach = t_quantile(freedom, 1 - alpha / 2) + t_quantile(freedom, power)
    return reach * estimate.standard_error
