"""The family of comparisons that one p and one interval account for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

import numpy as np

from fusion_bench.errors import UnknownNameError
from fusion_bench.stats.intervals import t_quantile
from fusion_bench.stats.max_t import FIRST_DRAWS, MOST_DRAWS, FamilyRow, RowResult, max_t
from fusion_bench.stats.randomization_tests import adjust_holm, default_resamples
from fusion_bench.stats.trials.trial_variance import TrialTerm

#: ``max_t``: p and interval hold for all comparisons together. ``holm``: p does, the intervals are
#: not adjusted. ``none``: neither.
Correction: TypeAlias = Literal["max_t", "holm", "none"]
#: What makes two rows the same: group ids, differences, and what trials add.
_RowContent: TypeAlias = tuple[tuple[str, ...], bytes, tuple[TrialTerm, ...]]


def infer_family(
    rows: Sequence[FamilyRow],
    *,
    correction: Correction = "max_t",
    seed: int = 0,
    alpha: float = 0.05,
    resamples: int | None = None,
    most_draws: int = MOST_DRAWS,
) -> tuple[tuple[RowResult, ...], int]:
    """p, interval and critical value of every row of a family.

    Args:
        rows: The family; identical rows count once.
        correction: How the number of comparisons is accounted for.
        seed: Seed of the signs.
        alpha: Level.
        resamples: Draws to start with; 10,000 by default, and for Holm at least 200 a comparison.
        most_draws: Draws at most; what is not clear then is ``open``.

    Returns:
        The rows, and the draws: the most of any row.

    Raises:
        UnknownNameError: There is no such correction.
        ConfigError: A level, seed or number of draws that cannot be used.
    """
    if correction not in get_args(Correction):
        raise UnknownNameError("correction", correction, get_args(Correction))
    if not rows:
        return (), 0
    if correction == "max_t":
        family = max_t(
            rows,
            seed=seed,
            alpha=alpha,
            first_draws=resamples or FIRST_DRAWS,
            most_draws=most_draws,
        )
        return family.rows, family.draws
    contents = [(row.keys, (row.difference + 0.0).tobytes(), row.trial_terms) for row in rows]
    distinct = dict(zip(contents, rows, strict=True))
    draws = max(resamples or 0, default_resamples(len(distinct) if correction == "holm" else 1))
    families = {
        content: max_t(
            [row], seed=seed, alpha=alpha, first_draws=draws, most_draws=max(draws, most_draws)
        )
        for content, row in distinct.items()
    }
    results = {content: family.rows[0] for content, family in families.items()}
    if correction == "holm":
        results = _adjust(results, alpha)
    return tuple(results[content] for content in contents), max(
        family.draws for family in families.values()
    )


def _adjust(results: dict[_RowContent, RowResult], alpha: float) -> dict[_RowContent, RowResult]:
    """Holm's p; rows that equal the baseline are no comparisons.

    The critical value is that of the smallest threshold, α ÷ rows, so that the detectable
    difference is that of the worst case.
    """
    tested = [key for key, row in results.items() if row.estimate.standard_error > 0]
    adjusted = adjust_holm(np.array([results[key].p for key in tested])).tolist() if tested else []
    for key, p in zip(tested, adjusted, strict=True):
        row = results[key]
        critical = t_quantile(row.estimate.freedom, 1 - alpha / (2 * len(tested)))
        results[key] = replace(row, p=p, critical_value=max(row.critical_value, critical))
    return results
