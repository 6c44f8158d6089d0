"""The drops that a gate's queries can decide: what ``max_drop: auto`` stands for.

A change that loses nothing ends in ``pass`` where its lower end, about 1.66 standard errors below a
mean that is itself .84 errors below 0 in one of five samples, lies above −m. So m = 2.5 standard
errors lets four of five such changes pass. The error is that of the difference to the other fusions
of the experiment, as the next change is not known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fusion_bench.errors import FusionBenchError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.settings import AUTO
from fusion_bench.experiment.system import System
from fusion_bench.gate.baseline import Baseline, SealedDrop
from fusion_bench.gate.checks import Check, ComparedCollection, build_checks, make_table
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.methods.fuse import Fusion
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.fuse.weighted_score import WeightedScore
from fusion_bench.methods.normalize.linear import MinMax
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.inference import mean_error
from fusion_bench.stats.power import round_queries
from fusion_bench.stats.values import MeasuredValues
from fusion_bench.util.formatting import format_number, pluralize

#: Standard errors in a drop that four of five changes without a loss pass.
ERRORS: Final = 2.5
#: The least drop, and the steps to which it is rounded up.
LEAST_DROP, STEP = 0.005, 0.001
#: Fewer other fusions, or smaller changes, tell too little; further fusions are added.
ENOUGH_FUSIONS: Final = 3


@dataclass(frozen=True)
class CheckSpread:
    """How far the guarded system lies from other fusions on one check.

    Attributes:
        check: The check, against the fusion with the largest error.
        against: The name of that fusion; empty = no other fusion has another value.
        error: The standard error of the difference.
    """

    check: Check
    against: str
    error: float

    @property
    def drop(self) -> float:
        """The smallest drop that the queries can decide."""
        steps = math.ceil(ERRORS * self.error / STEP * (1 - 1e-12))
        return max(LEAST_DROP, round(steps * STEP, 3))

    @property
    def reason(self) -> str:
        """Why it is this drop."""
        if not self.against:
            return f"the least, as no other fusion differs from the guarded system: {LEAST_DROP:g}"
        least = " is below the least" if ERRORS * self.error <= LEAST_DROP else ""
        return (
            f"{ERRORS:g} × {format_number(self.error)}, the standard error of the difference from "
            f"{self.against} with {pluralize(len(self.check.pair.keys), 'query')}{least}"
        )

    @property
    def sealed(self) -> SealedDrop:
        """What a baseline keeps."""
        check = self.check
        return SealedDrop(
            collection=check.collection,
            slice=check.slice,
            measure=check.pair.measure,
            max_drop=self.drop,
            reason=self.reason,
        )

    @property
    def warning(self) -> str | None:
        """Why queries are too few for a stated ``max_drop``; None = they are enough."""
        m, queries = self.check.max_drop, len(self.check.pair.keys)
        if m >= self.drop or not self.against:
            return None
        needed = "no number of queries suffices"
        if m > 0:
            count = round_queries(queries * (ERRORS * self.error / m) ** 2, up=True)
            needed = f"about {count:,} would do"
        return (
            f"{self.check.name}: max_drop {m:g} is less than {pluralize(queries, 'query')} can "
            f"decide: most changes that lose nothing end inconclusive; {needed}, or max_drop "
            f"{self.drop:g} (max_drop: auto)"
        )


def measure_spreads(inputs: GateInputs, baseline: Baseline | None = None) -> Iterator[CheckSpread]:
    """How far the guarded system lies from other fusions on each check of the policy.

    Fusions that lose too much do not count, see :func:`is_near`. If few are left, or all of them
    change few queries, those of :func:`_vary_fusion` stand beside them.

    Args:
        inputs: The experiment, and where its data is.
        baseline: Whose groups are taken; None = those found now.
    """
    candidate = inputs.candidate
    # The share that is answered states its drop, and other fusions have no threshold.
    policy = inputs.policy.model_copy(update={"answered": None})
    experiment = inputs.experiment.model_copy(update={"gate": policy})
    inputs = replace(inputs, experiment=experiment)
    others = [s for s in experiment.systems.values() if s != candidate and len(s.runs) > 1]
    for task in inputs.load_collections(*others, committed=baseline):
        guarded = _measure_values(candidate, task)
        own = _build_checks(inputs, task, guarded, guarded)
        fusions = _compare_fusions(inputs, task, guarded, others)
        variants: dict[str, list[Check]] = {}
        for place, check in enumerate(own):
            known = {name: each[place] for name, each in fusions.items() if is_near(each[place])}
            spread = find_spread(check, known)
            if spread is None:
                variants = variants or _compare_fusions(
                    inputs, task, guarded, _vary_fusion(candidate)
                )
                known |= {name: each[place] for name, each in variants.items()}
                spread = find_spread(check, known, is_enough=True)
            yield spread or CheckSpread(check, "", 0.0)


def is_near(check: Check) -> bool:
    """Return whether the other fusion loses no more than its own errors allow.

    Another one, such as raw scores of two scales beside z-scores, is no change that a gate passes.
    """
    return float(check.pair.difference.mean()) <= ERRORS * standard_error(check)


def find_spread(
    check: Check, fusions: Mapping[str, Check], *, is_enough: bool = False
) -> CheckSpread | None:
    """The spread of the guarded system around other fusions on one check.

    Args:
        check: The check.
        fusions: By the name of another fusion, the same check against it.
        is_enough: Whether few fusions, or small changes, tell enough.

    Returns:
        None where they do not: fewer than three fusions have other values, or each of them on
        fewer than half of the queries; otherwise where none has.
    """
    changed = {name: each.pair.changed for name, each in fusions.items() if each.error is None}
    differing = [name for name, count in changed.items() if count]
    has_large = any(2 * count >= len(check.pair.keys) for count in changed.values())
    if not differing or not (is_enough or (len(differing) >= ENOUGH_FUSIONS and has_large)):
        return None
    errors = {name: standard_error(fusions[name]) for name in differing}
    against = max(errors, key=errors.__getitem__)
    return CheckSpread(check, against, errors[against])


def _vary_fusion(system: System) -> list[System]:
    """Other fusions of the lists of a system, blended as there.

    RRF with k = 10, RRF with one list doubled, and a convex combination: without the latter, a
    harmless change to it passed in 64 to 67 % of the samples of one collection.
    """
    fusions: dict[str, Fusion] = {"RRF k=10": RRF(k=10)}
    fusions |= {f"RRF {name} ×2": RRF(weights={name: 2.0}) for name in system.runs}
    fusions["convex"] = WeightedScore(normalize=MinMax(), missing="zero")
    ended = dict.fromkeys(("dialect", "weights_by_type", "by_query_type", "by_intent"))
    return [
        system.model_copy(update={**ended, "name": name, "fusion": fusion})
        for name, fusion in fusions.items()
    ]


def _measure_values(system: System, task: EvaluationSet) -> dict[str, MeasuredValues]:
    """The values of a system by measure."""
    [scores] = evaluate_systems([system], task.runs, task.measures, training=task.training)
    rows = zip(task.measures, scores.values, strict=True)
    return {measure.name: MeasuredValues(row) for measure, row in rows}


def _compare_fusions(
    inputs: GateInputs,
    task: EvaluationSet,
    guarded: Mapping[str, MeasuredValues],
    systems: Sequence[System],
) -> dict[str, list[Check]]:
    """By system, every check of the policy against it; without systems that do not run here."""
    checks = {}
    loaded = task.dataset.digests().keys()
    for system in systems:
        if not system.list_keys <= loaded:
            continue
        try:
            other = _measure_values(system, task)
        except FusionBenchError:  # such as a document without a rerank score
            continue
        checks[system.name] = _build_checks(inputs, task, other, guarded)
    return checks


def _build_checks(
    inputs: GateInputs,
    task: EvaluationSet,
    other: Mapping[str, MeasuredValues],
    guarded: Mapping[str, MeasuredValues],
) -> list[Check]:
    """Every check of the policy of the guarded system against another one."""
    table = make_table(task, {"candidate": guarded, "baseline": other})
    return [*build_checks(inputs.policy, ComparedCollection(task, table))]


def standard_error(check: Check) -> float:
    """Standard error of the mean difference, by group; 0 with one group."""
    difference, codes = check.pair.difference, check.pair.groups
    residuals = np.bincount(codes, difference - difference.mean()).astype(np.float64)
    return float(np.nan_to_num(mean_error(residuals, len(difference))))


def seal_drops(inputs: GateInputs, baseline: Baseline) -> Baseline:
    """The baseline with the drops that ``max_drop: auto`` stands for."""
    checks = inputs.policy.checks.values()
    if all(each.max_drop != AUTO for each in checks):
        return baseline
    spreads = measure_spreads(inputs, baseline)
    auto = (each.sealed for each in spreads if each.check.is_auto)
    return baseline.model_copy(update={"max_drops": tuple(auto)})


def warn_of_low_limits(inputs: GateInputs, baseline: Baseline) -> Iterator[str]:
    """Why queries are too few for a ``max_drop`` that the experiment states, a text a check."""
    if all(each.max_drop == AUTO for each in inputs.policy.checks.values()):
        return
    for spread in measure_spreads(inputs, baseline):
        if spread.warning is not None and not spread.check.is_auto:
            yield spread.warning
