"""The checks of a policy on means, with their statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fusion_bench.checks.records import CompletionBounds
from fusion_bench.checks.unjudged import UnjudgedDifference
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.settings import GatePolicy, split_slice
from fusion_bench.gate import verdict
from fusion_bench.gate.baseline import CollectionBaseline, PairedUnjudged
from fusion_bench.gate.estimates import (
    CheckEstimates,
    CheckRepeats,
    SingleRule,
    compute_repeat_power,
    describe_repeats,
    estimate_check,
)
from fusion_bench.gate.power import RulePower, compute_power
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.corrections import adjust_holm, default_resamples, randomization_p_values
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.stats.repeat_variance import RepeatTerm


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
        reference: What ``baseline`` holds: the baseline's values, or those of its anchor.
        unjudged: What unjudged documents could change in the difference; None = nothing.
        bounds: What they could make of the candidate's mean; None = not known.
        repeats: The values of each repeat, of which those above are the means; None = one a side.
    """

    collection: str
    slice: str | None
    measure: str
    max_drop: float
    baseline: FloatArray
    candidate: FloatArray
    groups: IntArray
    reference: verdict.Reference = "baseline"
    unjudged: UnjudgedDifference | None = None
    bounds: CompletionBounds | None = None
    repeats: CheckRepeats | None = None

    @property
    def name(self) -> str:
        """``collection / slice / measure``."""
        return verdict.check_name(self.collection, self.slice, self.measure, self.reference)

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

    @cached_property
    def repeat_terms(self) -> tuple[RepeatTerm, ...]:
        """What repeats add to the variance of the mean difference."""
        return () if self.repeats is None else self.repeats.make_terms(self.groups)


@dataclass(frozen=True, eq=False)
class PairedCollection:
    """The values of a baseline and of a candidate for the same queries of one collection.

    Attributes:
        task: The collection.
        before: By measure, shape (Q,): the values of the baseline, or of its anchor.
        after: By measure, shape (Q,): the values of the candidate.
        unjudged: What unjudged documents could change; None with complete judgments.
        repeats: By measure, the values of each repeat, of which the others are the means; a measure
            with one a side is left out.
        record: The candidate's record, with these values; None = it has none.
    """

    task: EvaluationSet
    before: Mapping[str, FloatArray]
    after: Mapping[str, FloatArray]
    unjudged: PairedUnjudged | None = None
    repeats: Mapping[str, CheckRepeats] = field(default_factory=dict)
    record: CollectionBaseline | None = None


def build_checks(policy: GatePolicy, pair: PairedCollection) -> Iterator[Check]:
    """Every check of a policy on one collection: measure × slice."""
    task, before, after, unjudged = pair.task, pair.before, pair.after, pair.unjudged
    # The policy's measures begin with those of the checks.
    for (name, tolerance), measure in zip(policy.checks.items(), task.measures, strict=False):
        repeats = pair.repeats.get(measure.name)
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
                unjudged=unjudged.compare(measure.name, keep)
                if unjudged is not None and keep.any()
                else None,
                bounds=unjudged.candidate.select_bounds(measure.name, keep)
                if unjudged is not None and keep.any()
                else None,
                repeats=repeats and repeats.select_queries(keep),
            )


def _queries_in(task: EvaluationSet, slice_name: str | None) -> BoolArray:
    """(Q,): the queries of a slice; None = all."""
    if slice_name is None:
        return np.full(len(task.runs.queries), True)
    field, value = split_slice(slice_name)
    return np.array([other == value for other in task.runs.values_of(field)], dtype=bool)


def run_checks(
    checks: Sequence[Check], *, runs: int = 1, resamples: int | None = None, seed: int = 0
) -> tuple[verdict.CheckResult, ...]:
    """Run every check; all of them are one family of Holm's correction.

    A check with an error stays in the family with p = 1, so that it changes no other p-value.

    Args:
        checks: The checks.
        runs: R: every decision is taken at α/R, so that α holds over R different candidates.
        resamples: Resamples of the sign-flip test; max(10,000, 200 × checks × R) by default.
        seed: Seed of the random signs; the power uses the next one.

    Returns:
        One record a check, in their order.
    """
    if not checks:
        return ()
    resamples = resamples or default_resamples(len(checks) * runs)
    statistics = [_estimate(check, runs) for check in checks]
    p_fell = np.ones(len(checks))
    power: dict[int, RulePower] = {}
    levels = {"level": verdict.ALPHA / (len(checks) * runs), "bound_level": verdict.ALPHA / runs}
    for members in _group_by_queries(checks):
        rows = np.stack([checks[i].difference for i in members])
        groups = checks[members[0]].groups
        p_fell[members] = randomization_p_values(
            rows, groups, resamples=resamples, seed=seed, alternative="less"
        )
        plain = [n for n, i in enumerate(members) if not checks[i].repeat_terms]
        max_drops = [checks[members[n]].max_drop for n in plain]
        if plain:
            plain_power = compute_power(rows[plain], groups, max_drops, **levels, seed=seed + 1)
            power |= zip([members[n] for n in plain], plain_power, strict=True)
    for i, (check, estimates) in enumerate(zip(checks, statistics, strict=True)):
        if estimates is not None and check.repeat_terms:
            p_fell[i] = max(p_fell[i], estimates.p_at_zero)
            power[i] = compute_repeat_power(estimates, check.max_drop, **levels)
    p_regressed = np.array([1.0 if each is None else each.p_regressed for each in statistics])
    p_values = {"p": p_fell} | {
        name: np.minimum(1, runs * adjust_holm(p))
        for name, p in (("p_fell", p_fell), ("p_regressed", p_regressed))
    }
    rules = (SingleRule(check.max_drop, len(checks), runs, seed) for check in checks)
    return tuple(
        _describe(check)
        if estimates is None
        else _build_result(
            check, estimates, {name: float(p[i]) for name, p in p_values.items()}, power[i], rule
        )
        for i, (check, estimates, rule) in enumerate(zip(checks, statistics, rules, strict=True))
    )


def _group_by_queries(checks: Sequence[Check]) -> list[list[int]]:
    """Indices of the checks that share their queries, and so can share their random signs."""
    members: dict[tuple[str, str | None], list[int]] = {}
    for i, check in enumerate(checks):
        if check.error is None:
            members.setdefault((check.collection, check.slice), []).append(i)
    return list(members.values())


def _estimate(check: Check, runs: int) -> CheckEstimates | None:
    """The estimates of a check; None with an error."""
    if check.error is not None:
        return None
    return estimate_check(
        check.difference,
        check.groups,
        check.repeat_terms,
        max_drop=check.max_drop,
        alpha=verdict.ALPHA / runs,
    )


def is_accepted(check: Check) -> bool:
    """Whether a check is ``unchanged`` or passes, at least on these queries."""
    estimates = _estimate(check, 1)
    passes = estimates is not None and estimates.estimate.low > -check.max_drop
    is_decided = decides_status("pass", check.unjudged, check.max_drop)
    return not check.difference.any() or (passes and not is_decided)


def decides_status(
    status: verdict.CheckStatus, unjudged: UnjudgedDifference | None, max_drop: float
) -> bool:
    """Whether unjudged documents decide a check that would end with this status."""
    if unjudged is None:
        return False
    if status in {"pass", "pass on these queries"}:
        return unjudged.decides(1, max_drop, is_pass=True)
    return status in verdict.ALARMS and unjudged.decides(-1, max_drop)


def _describe(check: Check) -> verdict.CheckResult:
    """The record of a check without its statistics."""
    return verdict.CheckResult(
        collection=check.collection,
        slice=check.slice,
        measure=check.measure,
        reference=check.reference,
        max_drop=check.max_drop,
        status="inconclusive",
        error=check.error,
        queries=len(check.baseline),
        groups=len(np.unique(check.groups)),
        unjudged=check.unjudged and check.unjudged.record,
        bounds=check.bounds,
    )


def _build_result(
    check: Check,
    estimates: CheckEstimates,
    p_values: Mapping[str, float],
    power: RulePower,
    rule: SingleRule,
) -> verdict.CheckResult:
    difference, estimate = check.difference, estimates.estimate
    changed = int((difference != 0).sum())
    means = (check.baseline, check.candidate)
    status = verdict.decide_status(
        changed=changed,
        mean=estimate.mean,
        max_drop=check.max_drop,
        t_bound=estimate.low,
        betting_bound=estimates.betting_bound,
        p_fell=p_values["p_fell"],
        p_regressed=p_values["p_regressed"],
    )
    if decides_status(status, check.unjudged, check.max_drop):
        status = "unjudged decide"
    numbers = {
        "sd": _nan_to_none(estimate.sd),
        "t_bound": _nan_to_none(estimate.low),
        "betting_bound": _nan_to_none(estimates.betting_bound),
        "design_effect": estimate.design_effect,
        **p_values,
        "status": status,
        "changed": changed,
        "losses": int((difference < 0).sum()),
        "baseline_mean": exact_mean(check.baseline),
        "candidate_mean": exact_mean(check.candidate),
        "difference": estimate.mean,
        **power.model_dump(exclude={"rejection_drops"}),
        "needed": estimates.needed,
        "trials": check.repeats
        and describe_repeats(check.repeats, means, check.groups, estimate=estimate, rule=rule),
    }
    return _describe(check).model_copy(update=numbers)


def _nan_to_none(value: float) -> float | None:
    return None if np.isnan(value) else value
