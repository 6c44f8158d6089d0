"""The checks of a policy on means, with their statistics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress

import numpy as np

from fusion_bench.checks.records import CompletionBounds
from fusion_bench.checks.unjudged import UnjudgedDifference
from fusion_bench.config.json_records import none_if_nan
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.settings import (
    ANSWERED,
    AUTO,
    GatePolicy,
    Tolerance,
    split_slice,
)
from fusion_bench.gate import verdict
from fusion_bench.gate.baseline import CollectionBaseline, PairedUnjudged
from fusion_bench.gate.repeats import CheckRepeats
from fusion_bench.measures._base import is_bounded
from fusion_bench.measures.rankings import no_relevant
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.inference import (
    PairedRow,
    RowInference,
    infer_family,
)
from fusion_bench.stats.intervals import ALPHA, POWER, betting_bound, exact_mean, find_limit
from fusion_bench.stats.power import SampleSize, estimate_spread
from fusion_bench.stats.repeat_variance import repeat_variance


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
        keys: The group id of each query; its own id without groups.
        reference: What ``baseline`` holds: the baseline's values, or those of its anchor.
        unjudged: What unjudged documents could change in the difference; None = nothing.
        bounds: What they could make of the candidate's mean; None = not known.
        is_auto: The policy says ``max_drop: auto``.
        repeats: The values of each repeat, of which those above are the means; None = one a side.
    """

    collection: str
    slice: str | None
    measure: str
    max_drop: float
    baseline: FloatArray
    candidate: FloatArray
    keys: tuple[str, ...]
    reference: verdict.Reference = "baseline"
    unjudged: UnjudgedDifference | None = None
    bounds: CompletionBounds | None = None
    is_auto: bool = False
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

    @property
    def groups(self) -> IntArray:
        """(Q,): codes of the groups."""
        return number_by_appearance(self.keys)[0]

    @property
    def row(self) -> PairedRow:
        """What the inference needs of it."""
        repeats = () if self.repeats is None else self.repeats.means
        return PairedRow(self.difference, self.keys, repeats)


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
        max_drops: By slice and measure, what ``max_drop: auto`` stands for; 0 where it is left out.
        record: The candidate's record, with these values; None = it has none.
    """

    task: EvaluationSet
    before: Mapping[str, FloatArray]
    after: Mapping[str, FloatArray]
    unjudged: PairedUnjudged | None = None
    repeats: Mapping[str, CheckRepeats] = field(default_factory=dict)
    max_drops: Mapping[tuple[str | None, str], float] = field(default_factory=dict)
    record: CollectionBaseline | None = None


def build_checks(
    policy: GatePolicy, pair: PairedCollection, reference: verdict.Reference = "baseline"
) -> Iterator[Check]:
    """Every check of a policy on one collection: measure × slice.

    Args:
        policy: What is checked.
        pair: The values.
        reference: What its ``before`` holds. A measure that the anchor lacks is not checked.
    """
    task, before, unjudged = pair.task, pair.before, pair.unjudged
    for key, tolerance, name, counted in list_tolerances(policy, task):
        if reference == "anchor" and name not in before:
            continue
        repeats = pair.repeats.get(name)
        for slice_name in policy.slices_of(key):
            keep = _queries_in(task, slice_name) & counted
            sealed = pair.max_drops.get((slice_name, name), 0.0)
            max_drop = sealed if tolerance.max_drop == AUTO else tolerance.max_drop
            if reference == "anchor":
                stated = tolerance.max_drop_since_anchor
                max_drop = 2 * max_drop if stated is None else stated
            evidence = unjudged if keep.any() and key != ANSWERED else None
            yield Check(
                collection=task.dataset.name,
                slice=slice_name,
                measure=name,
                max_drop=max_drop,
                baseline=before[name][keep],
                candidate=pair.after[name][keep],
                keys=tuple(compress(task.runs.groups, keep.tolist())),
                reference=reference,
                unjudged=None if evidence is None else evidence.compare(name, keep),
                bounds=None if evidence is None else evidence.candidate.select_bounds(name, keep),
                is_auto=tolerance.max_drop == AUTO,
                repeats=repeats and repeats.select_queries(keep),
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


def _queries_in(task: EvaluationSet, slice_name: str | None) -> BoolArray:
    """(Q,): the queries of a slice; None = all."""
    if slice_name is None:
        return np.full(len(task.runs.queries), True)
    field, value = split_slice(slice_name)
    return np.array([other == value for other in task.runs.values_of(field)], dtype=bool)


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
    family = [check.row for check in checks if check.error is None]
    rows = iter(infer_family(family, seed=seed, alpha=alpha))
    return tuple(
        _describe(check) if check.error is not None else _build_result(check, next(rows), alpha)
        for check in checks
    )


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
    return verdict.CheckResult(
        collection=check.collection,
        slice=check.slice,
        measure=check.measure,
        reference=check.reference,
        max_drop=check.max_drop,
        status="inconclusive",
        error=check.error,
        queries=len(check.baseline),
        groups=len(set(check.keys)),
        unjudged=check.unjudged and check.unjudged.record,
        bounds=check.bounds,
    )


def _build_result(check: Check, row: RowInference, alpha: float) -> verdict.CheckResult:
    difference, m = check.difference, check.max_drop
    changed = int((difference != 0).sum())
    status = verdict.decide_status(row, changed=changed, max_drop=m, alpha=alpha)
    if decides_status(status, check.unjudged, m):
        status = "unjudged decide"
    groups, variance = check.groups, float(difference.var(ddof=1)) if len(difference) > 1 else 0.0
    is_known = variance > 0 and row.units > 1
    numbers = {
        "status": status,
        "changed": changed,
        "losses": int((difference < 0).sum()),
        "baseline_mean": exact_mean(check.baseline),
        "candidate_mean": exact_mean(check.candidate),
        "difference": row.mean,
        "standard_error": none_if_nan(row.error),
        "design_effect": row.error**2 * len(difference) / variance if is_known else None,
        "lower_end": _clip_end(row.lower_bound(alpha), check.measure),
        "upper_end": _clip_end(row.high, check.measure),
        "p": row.p,
        "has_few_changes": changed > 0 and not row.is_drawn,
        "unseen_loss": none_if_nan(row.mean - betting_bound(difference, groups, alpha=alpha)),
        "needed": _find_needed(check, row, alpha),
        "trials": check.repeats and check.repeats.describe(row.error),
    }
    if row.is_drawn:
        numbers |= {
            "min_detectable_drop": find_detectable_drop(row, m),
            "pass_rate": row.share_above(-m, 0.0, alpha),
            "regressed_rate": row.share_shown_below(-m, 0.0),
            "false_pass_rate": row.share_above(-m, -m, alpha),
        }
    return _describe(check).model_copy(update=numbers)


def _clip_end(end: float, measure: str) -> float | None:
    """An end of an interval, which stays where differences can be; None = there is none."""
    limit = find_limit(is_bounded=is_bounded(measure))
    clipped = min(max(end, -limit), limit)
    return clipped if math.isfinite(clipped) else None


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
    spread = estimate_spread(check.difference, check.groups)
    return spread.needed_queries(check.max_drop, critical) if spread.freedom else None
