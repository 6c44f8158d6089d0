"""The checks of a policy on means, and their statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.gate_settings import GatePolicy, split_slice
from fusion_bench.gate.power import RulePower, compute_power
from fusion_bench.gate.result import CheckResult, check_name
from fusion_bench.gate.verdict import ALPHA, MIN_CHANGED, decide_status
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.intervals import estimate_mean, exact_mean
from fusion_bench.stats.randomization_tests import (
    adjust_holm,
    default_resamples,
    randomization_p_values,
)


@dataclass(frozen=True, eq=False)
class Check:
    """A check before it runs: a measure on a slice of a collection.

    Attributes:
        collection: The dataset.
        slice: A query type, or ``field: value``; None = all queries.
        measure: Its name.
        max_drop: The tolerance.
        baseline: Shape (Q,): values of the baseline.
        candidate: Shape (Q,): values of the candidate for the same queries.
        groups: Shape (Q,): codes of the groups.
    """

    collection: str
    slice: str | None
    measure: str
    max_drop: float
    baseline: FloatArray
    candidate: FloatArray
    groups: IntArray

    @property
    def name(self) -> str:
        """``collection / slice / measure``."""
        return check_name(self.collection, self.slice, self.measure)

    @property
    def error(self) -> str | None:
        """Why it cannot run; None where it can."""
        if not len(self.baseline):
            return "this slice has no query"
        for name, values in (("candidate", self.candidate), ("baseline", self.baseline)):
            count = int((~np.isfinite(values)).sum())
            if count:
                return f"{count} of {len(values)} values of the {name} are not finite"
        return None

    @property
    def difference(self) -> FloatArray:
        """(Q,): candidate − baseline, float noise set to 0."""
        return paired_difference(self.candidate, self.baseline)


def build_checks(
    policy: GatePolicy,
    task: EvaluationSet,
    before: Mapping[str, FloatArray],
    after: Mapping[str, FloatArray],
) -> Iterator[Check]:
    """Every check of a policy on one collection: measure × slice.

    Args:
        policy: What is checked.
        task: The collection.
        before: The baseline's values by measure, each (Q,).
        after: The candidate's values.
    """
    # The policy's measures begin with those of the checks.
    for (name, tolerance), measure in zip(policy.checks.items(), task.measures, strict=False):
        for slice_name in policy.slices_of(name):
            keep = _queries_in(task, slice_name)
            yield Check(
                collection=task.dataset.name,
                slice=slice_name,
                measure=measure.name,
                max_drop=tolerance.max_drop,
                baseline=before[measure.name][keep],
                candidate=after[measure.name][keep],
                groups=task.groups[keep],
            )


def _queries_in(task: EvaluationSet, slice_name: str | None) -> BoolArray:
    """(Q,): the queries of a slice; None = all."""
    if slice_name is None:
        return np.full(len(task.runs.queries), True)
    field, value = split_slice(slice_name)
    return np.array([other == value for other in task.runs.values_of(field)], dtype=bool)


def run_checks(
    checks: Sequence[Check], *, resamples: int | None = None, seed: int = 0
) -> tuple[CheckResult, ...]:
    """Run every check; all of them are one family of Holm's correction.

    A check with an error stays in the family with p = 1, so that it changes no other p-value.

    Args:
        checks: The checks.
        resamples: Resamples of the randomization test; max(10,000, 200 × checks) by default.
        seed: Seed of the random signs; the power uses the next one.

    Returns:
        One record a check, in their order.
    """
    p = np.ones(len(checks))
    resamples = resamples or default_resamples(len(checks))
    level = ALPHA / len(checks)
    power: dict[int, RulePower] = {}
    for members in _group_by_queries(checks):
        rows = np.stack([checks[i].difference for i in members])
        groups = checks[members[0]].groups
        p[members] = randomization_p_values(
            rows, groups, resamples=resamples, seed=seed, alternative="less"
        )
        max_drops = [checks[i].max_drop for i in members]
        member_power = compute_power(rows, groups, max_drops, level=level, seed=seed + 1)
        power |= zip(members, member_power, strict=True)
    adjusted = adjust_holm(p)
    return tuple(
        _build_result(check, float(p[i]), float(adjusted[i]), power.get(i))
        for i, check in enumerate(checks)
    )


def _group_by_queries(checks: Sequence[Check]) -> list[list[int]]:
    """Indices of the checks that share their queries, and so can share their random signs."""
    members: dict[tuple[str, str | None], list[int]] = {}
    for i, check in enumerate(checks):
        if check.error is None:
            members.setdefault((check.collection, check.slice), []).append(i)
    return list(members.values())


def _build_result(check: Check, p: float, p_holm: float, power: RulePower | None) -> CheckResult:
    """The record of a check; ``power`` is None for one with an error."""
    result = CheckResult(
        collection=check.collection,
        slice=check.slice,
        measure=check.measure,
        max_drop=check.max_drop,
        status="inconclusive",
        error=check.error,
        queries=len(check.baseline),
        groups=len(np.unique(check.groups)),
    )
    if power is None:
        return result
    difference = check.difference
    changed = int((difference != 0).sum())
    # The lower end of the two-sided interval at 2α is the one-sided bound at α.
    mean = estimate_mean(difference, check.groups, alpha=2 * ALPHA)
    status = decide_status(
        mean=mean.mean,
        lower_bound=mean.low,
        p_holm=p_holm,
        changed=changed,
        max_drop=check.max_drop,
    )
    statistics = {
        "status": status,
        "changed": changed,
        "losses": int((difference < 0).sum()),
        "baseline_mean": exact_mean(check.baseline),
        "candidate_mean": exact_mean(check.candidate),
        "difference": mean.mean,
        "lower_bound": None if np.isnan(mean.low) else mean.low,
        "p": p,
        "p_holm": p_holm,
        "min_detectable_drop": power.min_detectable_drop,
        "false_pass_rate": power.false_pass_rate,
        "few_changed": changed < MIN_CHANGED,
    }
    return result.model_copy(update=statistics)
