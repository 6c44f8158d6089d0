"""The record of the trials of one check."""

from __future__ import annotations

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.gate.records.check_trials import CheckTrialsResult
from fusion_bench.gate.trials.check_trials import CheckTrials
from fusion_bench.gate.trials.single_trials import SingleRule, decide_single_trials
from fusion_bench.stats.intervals import MeanEstimate
from fusion_bench.stats.trials.trial_spread import measure_trial_spread


def describe_trials(
    trials: CheckTrials,
    means: tuple[FloatArray, FloatArray],
    groups: IntArray,
    *,
    estimate: MeanEstimate,
    rule: SingleRule,
) -> CheckTrialsResult:
    """What a verdict says of the trials of a check.

    Args:
        trials: The values of each trial.
        means: The baseline's and the candidate's values, each (Q,).
        groups: Shape (Q,): codes.
        estimate: The mean difference, with what trials add.
        rule: How single trials are decided.
    """
    error = estimate.standard_error
    return CheckTrialsResult(
        baseline=1 if trials.baseline is None else len(trials.baseline),
        candidate=1 if trials.candidate is None else len(trials.candidate),
        baseline_sd=_measure_sd(trials.baseline),
        candidate_sd=_measure_sd(trials.candidate),
        share=estimate.trial_variance / error**2 if estimate.trial_variance > 0 else 0.0,
        is_paired=trials.is_paired,
        is_borrowed=trials.borrows and (trials.baseline is None or trials.candidate is None),
        single=decide_single_trials(trials.single_differences(means), groups, rule),
    )


def _measure_sd(values: FloatArray | None) -> float | None:
    return None if values is None else measure_trial_spread(values).sd
