"""A cross-fitted gain that holds for new trials of the lists too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusion_bench.data.ordering import IntArray
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.power.sample_size import upper_tail
from fusion_bench.stats.trials.trial_variance import (
    TrialTerm,
    add_trial_variance,
    move_quantile,
)
from fusion_bench.tune.validation.all_queries.cross_fitting import CrossFit, two_sided_p


def widen_fit(fit: CrossFit, terms: Sequence[TrialTerm], groups: IntArray) -> CrossFit:
    """Add what the trials of the lists add to the variance of a gain.

    Flips turn queries and know nothing of trials. As in ``stats.max_t``, the t of the widened gain
    counts as the t of a flip with the same Student's p, and c is carried over to its degrees of
    freedom likewise.

    Args:
        fit: Of the means over trials.
        terms: From ``make_trial_terms``; empty = the fit as it is.
        groups: Shape (Q,): codes of the groups.
    """
    by_queries = estimate_mean(fit.values, groups)
    widened = add_trial_variance(by_queries, terms)
    if not (widened.trial_variance > 0 and fit.standard_error > 0):
        return fit
    t = abs(fit.mean) / widened.standard_error
    moved = move_quantile(t, widened.freedom, by_queries.freedom)
    return replace(
        fit,
        standard_error=widened.standard_error,
        critical=move_quantile(fit.critical, by_queries.freedom, widened.freedom),
        p=two_sided_p(fit.null, moved, upper_tail(t, widened.freedom)),
    )
