"""The checks of a policy on means, with their statistics."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from fusion_bench.config.json_records import none_if_nan
from fusion_bench.data.ordering import BoolArray
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.settings import (
    ANSWERED,
    AUTO,
    GatePolicy,
    Tolerance,
    split_slice,
)
from fusion_bench.gate import verdict
from fusion_bench.measures._base import is_bounded
from fusion_bench.measures.rankings import no_relevant
from fusion_bench.stats.inference import RowInference, infer_family
from fusion_bench.stats.intervals import ALPHA, POWER, betting_bound, exact_mean
from fusion_bench.stats.power import SampleSize, estimate_spread
from fusion_bench.stats.repeat_variance import repeat_variance
from fusion_bench.stats.unjudged import UnjudgedDifference
from fusion_bench.stats.values import MeasuredValues, Pair, ValueTable


@dataclass(frozen=True, eq=False)
class Check:
    """A check before it runs: a measure on a slice of a collection.

    Attributes:
        collection: The dataset.
        slice: A query type, or ``field: value``; None = all queries.
        max_drop: The tolerance.
        pair: Values of the candidate and of the baseline, or of its anchor, for the same queries.
        reference: Whether the values of the baseline or of its anchor are compared.
        is_auto: The policy says ``max_drop: auto``.
    """

    collection: str
    slice: str | None
    max_drop: float
    pair: Pair
    reference: verdict.Reference = "baseline"
    is_auto: bool = False

    @property
    def name(self) -> str:
        """``collection / slice / measure``."""
        return verdict.check_name(self.collection, self.slice, self.pair.measure, self.reference)

    @property
    def error(self) -> str | None:
        """Why it cannot run; None where it can."""
        if not self.pair.keys:
            return "this slice has no query"
        sides = {"candidate": self.pair.candidate, "baseline": self.pair.baseline}
        for name, side in sides.items():
            count = int((~np.isfinite(side.values)).sum())
            if count:
                return f"{count} of {len(side.values)} values of the {name} are not finite"
        return None

    @cached_property
    def unjudged(self) -> UnjudgedDifference | None:
        """What unjudged documents could change in the difference; None = nothing."""
        return self.pair.compare_unjudged(ALPHA) if self.pair.keys else None


@dataclass(frozen=True, eq=False)
class ComparedCollection:
    """A candidate beside the baseline and its anchor on one collection.

    Attributes:
        task: The collection.
        table: The systems ``candidate``, ``baseline`` and ``anchor``, as far as they are compared.
        max_drops: By slice and measure, what ``max_drop: auto`` stands for; 0 where it is left out.
        borrowing: Of ``baseline`` and ``anchor`` those that have one file of a list and the
            candidate several, or the other way round.
    """

    task: EvaluationSet
    table: ValueTable
    max_drops: Mapping[tuple[str | None, str], float] = field(default_factory=dict)
    borrowing: Collection[str] = ()

    def pair(self, measure: str, reference: verdict.Reference = "baseline") -> Pair:
        """The candidate against the baseline, or its anchor, on one measure."""
        pair = self.table.pair("candidate", measure, reference)
        return replace(pair, borrows=reference in self.borrowing)


def make_table(
    task: EvaluationSet, systems: Mapping[str, Mapping[str, MeasuredValues]]
) -> ValueTable:
    """The values of a candidate, a baseline and an anchor on one collection."""
    names = dict.fromkeys(name for values in systems.values() for name in values)
    bounded = [*filter(is_bounded, names)]
    kind = task.judgment_kind
    return ValueTable(systems, "baseline", tuple(names), task.runs.groups, bounded, kind)


def build_checks(
    policy: GatePolicy, compared: ComparedCollection, reference: verdict.Reference = "baseline"
) -> Iterator[Check]:
    """Every check of a policy on one collection: measure × slice.

    Args:
        policy: What is checked.
        compared: The values.
        reference: Of which the values are compared. A measure that the anchor lacks is not checked.
    """
    task = compared.task
    for key, tolerance, name, counted in list_tolerances(policy, task):
        if reference == "anchor" and name not in compared.table.systems["anchor"]:
            continue
        pair = compared.pair(name, reference)
        for slice_name in policy.slices_of(key):
            keep = counted
            if slice_name is not None:
                field, value = split_slice(slice_name)
                keep = counted & [other == value for other in task.runs.values_of(field)]
            sealed = compared.max_drops.get((slice_name, name), 0.0)
            max_drop = sealed if tolerance.max_drop == AUTO else tolerance.max_drop
            if reference == "anchor":
                stated = tolerance.max_drop_since_anchor
                max_drop = 2 * max_drop if stated is None else stated
            yield Check(
                collection=task.dataset.name,
                slice=slice_name,
                max_drop=max_drop,
                pair=pair.select_queries(keep),
                reference=reference,
                is_auto=tolerance.max_drop == AUTO,
            )


def list_tolerances(
    policy: GatePolicy, task: EvaluationSet
) -> Iterator[tuple[str, Tolerance, str, BoolArray]]:
    """Key, tolerance, measure and queries, (Q,), of whatever may fall on one collection."""
    # The policy's measures begin with those of the checks.
    for (key, tolerance), measure in zip(policy.checks.items(), task.measures, strict=False):
        yield key, tolerance, measure.name, np.full(len(task.runs.queries), True)
    if policy.answered is not None:
        has_answer = ~no_relevant(task.runs, task.runs.binary_relevance)
        yield ANSWERED, policy.answered, ANSWERED, has_answer


def run_checks(
    checks: Sequence[Check], *, runs: int = 1, seed: int = 0
) -> tuple[verdict.CheckResult, ...]:
    """Run every check; all of them are one family.

    A check with an error stays outside of the family: no run with an error passes.

    Args:
        checks: The checks.
        runs: R: every decision is taken at α/R, so that α holds over R different candidates.
        seed: Of the draws.

    Returns:
        One record a check, in their order.
    """
    alpha = ALPHA / runs
    family = [check.pair for check in checks if check.error is None]
    rows = iter(infer_family(family, seed=seed, alpha=alpha))
    results = []
    for check in checks:
        if check.error is not None:
            results.append(_describe(check))
            continue
        pair, m, row = check.pair, check.max_drop, next(rows)
        status = verdict.decide_status(row, changed=pair.changed, max_drop=m, alpha=alpha)
        if decides_status(status, check.unjudged, m):
            status = "unjudged decide"
        difference, lower_end = pair.difference, row.lower_bound(alpha)
        bound = betting_bound(difference, pair.groups, alpha=alpha)
        variance = float(difference.var(ddof=1)) if len(difference) > 1 else 0.0
        is_known = variance > 0 and row.units > 1
        numbers = {
            "status": status,
            "changed": pair.changed,
            "losses": pair.losses,
            "baseline_mean": exact_mean(pair.baseline.values),
            "candidate_mean": exact_mean(pair.candidate.values),
            "difference": row.mean,
            "standard_error": none_if_nan(row.error),
            "design_effect": row.error**2 * len(difference) / variance if is_known else None,
            "lower_end": lower_end if math.isfinite(lower_end) else None,
            "upper_end": none_if_nan(row.high),
            "p": row.p,
            "has_few_changes": pair.changed > 0 and not row.is_drawn,
            "unseen_loss": none_if_nan(row.mean - bound),
            "needed": _find_needed(check, row, alpha),
            "trials": _describe_repeats(pair, row.error) if max(pair.counts) > 1 else None,
        }
        if row.is_drawn:
            numbers |= {
                "min_detectable_drop": find_detectable_drop(row, m),
                "pass_rate": row.share_above(-m, 0.0, alpha),
                "regressed_rate": row.share_shown_below(-m, 0.0),
                "false_pass_rate": row.share_above(-m, -m, alpha),
            }
        results.append(_describe(check).model_copy(update=numbers))
    return tuple(results)


def decides_status(
    status: verdict.CheckStatus, unjudged: UnjudgedDifference | None, max_drop: float
) -> bool:
    """Whether unjudged documents decide a check that would end with this status."""
    if unjudged is None:
        return False
    if status == "pass":
        return unjudged.decides(1, max_drop, is_pass=True)
    return status == "regressed" and unjudged.decides(-1, max_drop)


def _describe(check: Check) -> verdict.CheckResult:
    """The record of a check without its statistics."""
    pair, bounds = check.pair, check.pair.candidate.bounds
    return verdict.CheckResult(
        collection=check.collection,
        slice=check.slice,
        measure=pair.measure,
        reference=check.reference,
        max_drop=check.max_drop,
        status="inconclusive",
        error=check.error,
        queries=len(pair.keys),
        groups=len(set(pair.keys)),
        unjudged=check.unjudged and check.unjudged.record,
        bounds=bounds.record if bounds is not None and pair.keys else None,
    )


def _describe_repeats(pair: Pair, error: float) -> verdict.CheckRepeatsResult:
    """What a verdict says of the repeats of both sides.

    Args:
        pair: Has several on one side.
        error: The standard error of the mean difference over queries.
    """
    added, counts = repeat_variance(pair.repeats), pair.counts
    candidate, baseline = (
        None if count == 1 or side.repeats is None else float(side.repeats.mean(axis=1).std(ddof=1))
        for count, side in zip(counts, (pair.candidate, pair.baseline), strict=True)
    )
    return verdict.CheckRepeatsResult(
        candidate=counts[0],
        baseline=counts[1],
        candidate_sd=candidate,
        baseline_sd=baseline,
        share=added / (error**2 + added) if added > 0 else 0.0,
        is_paired=pair.is_paired,
        is_borrowed=pair.is_borrowed,
    )


def find_detectable_drop(row: RowInference, max_drop: float) -> float | None:
    """The true drop that ends in ``regressed`` in 80 % of the draws; None = in none.

    A draw that lies by s* off the truth is ``regressed`` where its mean is below −m, and the upper
    end of its interval below 0.

    Args:
        row: A difference that draws decide.
        max_drop: m.
    """
    widths = np.hypot(row.critical[1] * row.errors, row.repeat_width)
    # What repeats add to the spread of the mean, draws of queries do not have.
    stretch = math.hypot(1, math.sqrt(repeat_variance(row.repeats)) / row.error)
    drops = stretch * row.shifts + np.maximum(widths, max_drop)
    drop = float(np.quantile(drops, POWER, method="higher"))
    return drop if math.isfinite(drop) else None


def _find_needed(check: Check, row: RowInference, alpha: float) -> SampleSize | None:
    """Queries that a pass needs; None where repeats add variance: queries alone may not suffice."""
    critical, repeat_width = row.one_sided(alpha)
    if not (check.max_drop > 0 and row.error > 0 and math.isfinite(critical)) or repeat_width > 0:
        return None
    spread = estimate_spread(check.pair.difference, check.pair.groups)
    return spread.needed_queries(check.max_drop, critical) if spread.freedom else None
