"""The checks of a policy on means, and their statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_records.needed_queries import NeededQueries
from fusion_bench.evaluation.unjudged.unjudged_difference import UnjudgedDifference
from fusion_bench.experiment.gate_settings import GatePolicy, split_slice
from fusion_bench.gate.betting_bound import betting_bound
from fusion_bench.gate.power.needed_queries import needed_to_pass
from fusion_bench.gate.power.rule_power import RulePower, compute_power
from fusion_bench.gate.records.check_result import CheckResult, Reference, check_name
from fusion_bench.gate.unjudged_values import PairedUnjudged, decides_status
from fusion_bench.gate.verdict import ALPHA, decide_status
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean, exact_mean
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
        reference: What ``baseline`` holds: the baseline's values, or those of its anchor.
        unjudged: What unjudged documents could change in the difference; None = nothing.
    """

    collection: str
    slice: str | None
    measure: str
    max_drop: float
    baseline: FloatArray
    candidate: FloatArray
    groups: IntArray
    reference: Reference = "baseline"
    unjudged: UnjudgedDifference | None = None

    @property
    def name(self) -> str:
        """``collection / slice / measure``."""
        return check_name(self.collection, self.slice, self.measure, self.reference)

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
    unjudged: PairedUnjudged | None = None,
) -> Iterator[Check]:
    """Every check of a policy on one collection: measure × slice.

    Args:
        policy: What is checked.
        task: The collection.
        before: The baseline's values by measure, each (Q,).
        after: The candidate's values.
        unjudged: What unjudged documents could change; None = nothing.
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
                unjudged=unjudged.compare(measure.name, keep)
                if unjudged is not None and keep.any()
                else None,
            )


def _queries_in(task: EvaluationSet, slice_name: str | None) -> BoolArray:
    """(Q,): the queries of a slice; None = all."""
    if slice_name is None:
        return np.full(len(task.runs.queries), True)
    field, value = split_slice(slice_name)
    return np.array([other == value for other in task.runs.values_of(field)], dtype=bool)


def run_checks(
    checks: Sequence[Check], *, runs: int = 1, resamples: int | None = None, seed: int = 0
) -> tuple[CheckResult, ...]:
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
    for members in _group_by_queries(checks):
        rows = np.stack([checks[i].difference for i in members])
        groups = checks[members[0]].groups
        p_fell[members] = randomization_p_values(
            rows, groups, resamples=resamples, seed=seed, alternative="less"
        )
        levels = {"level": ALPHA / (len(checks) * runs), "bound_level": ALPHA / runs}
        max_drops = [checks[i].max_drop for i in members]
        member_power = compute_power(rows, groups, max_drops, **levels, seed=seed + 1)
        power |= zip(members, member_power, strict=True)
    p_regressed = np.array([estimate.p_regressed for estimate in statistics])
    adjusted = [np.minimum(1, runs * adjust_holm(p)) for p in (p_fell, p_regressed)]
    return tuple(
        _build_result(
            check, statistics[i], float(p_fell[i]), (adjusted[0][i], adjusted[1][i]), power[i]
        )
        if check.error is None
        else _describe(check)
        for i, check in enumerate(checks)
    )


def _group_by_queries(checks: Sequence[Check]) -> list[list[int]]:
    """Indices of the checks that share their queries, and so can share their random signs."""
    members: dict[tuple[str, str | None], list[int]] = {}
    for i, check in enumerate(checks):
        if check.error is None:
            members.setdefault((check.collection, check.slice), []).append(i)
    return list(members.values())


@dataclass(frozen=True)
class _Estimates:
    """Mean and bounds of a check at the level of one run, and p of mean ≥ −m, unadjusted."""

    mean: float = np.nan
    sd: float = np.nan
    design_effect: float | None = None
    t_bound: float = np.nan
    betting_bound: float = np.nan
    p_regressed: float = 1.0
    needed: NeededQueries | None = None


def _estimate(check: Check, runs: int) -> _Estimates:
    if check.error is not None:
        return _Estimates()
    alpha = ALPHA / runs
    # The lower end of the two-sided interval at 2α is the one-sided bound at α.
    estimate = estimate_mean(check.difference, check.groups, alpha=2 * alpha)
    return _Estimates(
        mean=estimate.mean,
        sd=estimate.sd,
        design_effect=estimate.design_effect,
        t_bound=estimate.low,
        betting_bound=betting_bound(check.difference, check.groups, alpha=alpha),
        p_regressed=p_at_least(estimate, -check.max_drop),
        needed=needed_to_pass(check.difference, check.groups, check.max_drop, alpha=alpha),
    )


def is_accepted(check: Check) -> bool:
    """Whether a check is ``unchanged`` or passes, at least on these queries."""
    difference = check.difference
    estimate = estimate_mean(difference, check.groups, alpha=2 * ALPHA)
    passes = estimate.low > -check.max_drop and not decides_status(
        "pass", check.unjudged, check.max_drop
    )
    return not difference.any() or passes


def p_at_least(estimate: MeanEstimate, value: float) -> float:
    """P of the one-sided t test of "the true mean is at least ``value``"; 1 = no spread known."""
    from scipy.special import stdtr  # late, as it is slow

    gap, error = estimate.mean - value, estimate.standard_error
    if not error > 0:
        return 0.0 if error == 0 and gap < 0 else 1.0
    return float(stdtr(estimate.freedom, gap / error))


def _describe(check: Check) -> CheckResult:
    """The record of a check without its statistics."""
    return CheckResult(
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
    )


def _build_result(
    check: Check,
    estimates: _Estimates,
    p: float,
    adjusted: tuple[float, float],
    power: RulePower,
) -> CheckResult:
    difference = check.difference
    changed = int((difference != 0).sum())
    p_fell, p_regressed = map(float, adjusted)
    status = decide_status(
        changed=changed,
        mean=estimates.mean,
        max_drop=check.max_drop,
        t_bound=estimates.t_bound,
        betting_bound=estimates.betting_bound,
        p_fell=p_fell,
        p_regressed=p_regressed,
    )
    if decides_status(status, check.unjudged, check.max_drop):
        status = "unjudged decide"
    estimated = ("sd", "t_bound", "betting_bound")
    numbers = {
        **{name: _nan_to_none(getattr(estimates, name)) for name in estimated},
        "design_effect": estimates.design_effect,
        "p": p,
        "p_fell": p_fell,
        "p_regressed": p_regressed,
        "status": status,
        "changed": changed,
        "losses": int((difference < 0).sum()),
        "baseline_mean": exact_mean(check.baseline),
        "candidate_mean": exact_mean(check.candidate),
        "difference": estimates.mean,
        "min_detectable_drop": power.min_detectable_drop,
        "pass_rate": power.pass_rate,
        "small_pass_rate": power.small_pass_rate,
        "alarm_rate": power.alarm_rate,
        "false_pass_rate": power.false_pass_rate,
        "needed": estimates.needed,
    }
    return _describe(check).model_copy(update=numbers)


def _nan_to_none(value: float) -> float | None:
    return None if np.isnan(value) else value
