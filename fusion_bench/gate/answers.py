"""Which unanswerable queries a gated system answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.answered_queries import (
    NO_UNANSWERABLE,
    count_calibrating,
    find_queries,
)
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, add_unjudged_queries
from fusion_bench.gate.baseline import Baseline
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.verdict import FalseAnswersResult, decide_false_answers
from fusion_bench.ranking.query_signals import signal_of
from fusion_bench.stats.intervals import ALPHA


def require_abstain(inputs: GateInputs, committed: Baseline | None = None) -> None:
    """Refuse a candidate that answers every query, if that cannot be compared or checked.

    Args:
        inputs: The experiment.
        committed: The baseline; None = it is written anew.

    Raises:
        ConfigError: It has no threshold, and the baseline has one, or a check needs one.
    """
    candidate, policy = inputs.candidate, inputs.policy
    if candidate.abstain is not None:
        candidate.abstain.find_threshold(candidate.name)
        return
    where = inputs.source.where(("systems", candidate.name))
    remedy = "write the threshold that 'fusion-bench threshold EXPERIMENT --save FILE' finds"
    if policy.answered is not None or policy.false_answers is not None:
        raise ConfigError(
            f"{where}: no 'abstain', which gate.checks needs for 'answered' and 'false answers': "
            f"{remedy}, or remove these checks"
        )
    if committed is not None and committed.config.get("abstain") is not None:
        raise ConfigError(
            f"{where}: no 'abstain', which the baseline has: {remedy}, or accept that every query "
            "is answered with --update --reason"
        )


def check_false_answers(
    inputs: GateInputs, collections: Sequence[EvaluationSet]
) -> Iterator[FalseAnswersResult]:
    """The share of unanswerable queries that the candidate answers, on each collection.

    Args:
        inputs: The experiment, and where its data is.
        collections: The loaded datasets, of judged queries.

    Raises:
        FusionBenchError: No query is known to have no answer, or they are those that set the
            threshold, or the signal is NaN for every query.
    """
    policy, candidate = inputs.policy, inputs.candidate
    if policy.false_answers is None or candidate.abstain is None:
        return
    abstain = candidate.abstain
    for task in collections:
        name, every = task.dataset.name, add_unjudged_queries(task)
        queries = find_queries(every)
        if queries.answerable.all():
            raise ConfigError(f"{name}: gate.checks.false answers: {NO_UNANSWERABLE}")
        if count := count_calibrating(every, queries, abstain.calibrated_on):
            raise ConfigError(
                f"{name}: gate.checks.false answers: {count:,} of these "
                f"{(~queries.answerable).sum():,} unanswerable queries set the threshold of "
                f"{candidate.name!r}, so they cannot check it: set the threshold on others, such "
                "as a split of their own (fusion-bench threshold EXPERIMENT --set split=dev)"
            )
        values = signal_of(every.fit_system(candidate), queries.runs, abstain.signal)
        if np.isnan(values).all():
            raise ConfigError(f"{name}: {abstain.signal} of {candidate.name!r} is always NaN")
        units = values[queries.calibrates]
        yield decide_false_answers(
            name,
            int((units > abstain.find_threshold(candidate.name)).sum()),
            len(units),
            policy.false_answers.max,
            ALPHA / policy.runs,
        )
