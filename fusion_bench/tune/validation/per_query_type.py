"""Numbers for each query type: are they worth it, against one set of numbers for all?

Each type with queries enough is searched by itself, from the numbers for all; the rest keeps them.
The held-out queries say whether that beats the numbers for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from fusion_bench.config.parameters import Params
from fusion_bench.config.query_types import UNSURE, type_of
from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.scores import described
from fusion_bench.experiment.system import System, Variant
from fusion_bench.report.tuning import tuning_records as model
from fusion_bench.tune.search.search import SearchResult
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.cross_validation import choose_trial
from fusion_bench.tune.validation.held_out import HeldOutEvaluation
from fusion_bench.tune.validation.splits import BoolArray

__all__ = ["LEAST_GROUPS", "tune_by_type"]

#: A type with fewer tuning groups keeps the numbers for all.
LEAST_GROUPS = 5
#: Only what stands here can differ by type.
PARTS = ("fusion", "blend")

#: A type, its objective and a mask of the queries that may be looked at → what a search finds.
TypeSearch = Callable[[str, TuningObjective, BoolArray], SearchResult]


def tune_by_type(
    evaluation: HeldOutEvaluation, chosen: Trial, search: TypeSearch
) -> model.Typed | None:
    """Search each query type by itself, and evaluate all of them together.

    Args:
        evaluation: The objective, its split and the rules.
        chosen: The numbers for all queries.
        search: Runs one search.

    Returns:
        None where no type has queries enough, or nothing that is tuned can differ by type.
    """
    base = _objective_by_type(evaluation.objective, chosen.params)
    masks = _type_masks(base)
    enough = {name: mask for name, mask in masks.items() if _has_enough_groups(evaluation, mask)}
    if not enough or not base.parameters or len(masks) < 2:
        return None
    found: dict[str, Params] = {}
    for name, mask in enough.items():
        keep = evaluation.split.tune & mask
        result = search(name, base, keep)
        found[name] = choose_trial(base, result, keep, evaluation.tuning.choose).params
    return _evaluate_held_out(evaluation, base, masks, found)


def _objective_by_type(objective: TuningObjective, params: Params) -> TuningObjective:
    """The objective whose default is the numbers for all, over what can differ by type."""
    space = tuple(one for one in objective.parameters if one.path.split(".")[0] in PARTS)
    known = {one.path for one in space}
    # A condition on what is fixed now: the parameter takes part, or it does not.
    kept = tuple(
        one
        for one in space
        if all(path in known or params.get(path) in allowed for path, allowed in one.when)
    )
    kept = tuple(
        replace(one, when=tuple((path, allowed) for path, allowed in one.when if path in known))
        for one in kept
    )
    return replace(objective, system=objective.build_system(params), parameters=kept)


def _type_masks(objective: TuningObjective) -> Mapping[str, BoolArray]:
    """(Q,) by type: the queries that a system by type would answer with that type's numbers."""
    runs = objective.runs
    known = {name for name in runs.types if name is not None} | {UNSURE}
    own = [
        type_of(query_type, confidence, known)
        for query_type, confidence in zip(runs.types, runs.confidences, strict=True)
    ]
    return {name: np.array([one == name for one in own]) for name in sorted(set(own))}


def _has_enough_groups(evaluation: HeldOutEvaluation, mask: BoolArray) -> bool:
    groups = evaluation.group_codes[mask & evaluation.split.tune]
    return len(np.unique(groups)) >= LEAST_GROUPS and bool((mask & evaluation.split.held_out).any())


def _evaluate_held_out(
    evaluation: HeldOutEvaluation,
    base: TuningObjective,
    masks: Mapping[str, BoolArray],
    found: Mapping[str, Params],
) -> model.Typed:
    """All types together on the held-out queries, against the default and the numbers for all."""
    default = evaluation.objective.evaluate_params([evaluation.objective.default_params])[0]
    overall = base.evaluate_params([base.default_params])[0]
    typed: FloatArray = overall.copy()
    for name, params in found.items():
        typed[masks[name]] = base.evaluate_params([params])[0][masks[name]]
    over = evaluation.measure_gain(typed, overall, evaluation.split.held_out)
    return model.Typed(
        params={name: dict(params) for name, params in found.items()},
        config=described(combine_types(base, found)),
        gain=evaluation.measure_gain(typed, default, evaluation.split.held_out),
        over_global=over,
        verdict=evaluation.decide_verdict(over),
    )


def combine_types(base: TuningObjective, found: Mapping[str, Params]) -> System:
    """One system that answers each type with its own numbers, and the rest with those for all."""
    systems = {UNSURE: base.system} | {
        name: base.build_system(params) for name, params in found.items()
    }
    variants = {
        name: Variant(fusion=system.fusion, blend=system.blend)
        for name, system in sorted(systems.items())
    }
    own = systems[UNSURE]
    changed = {"fusion": own.fusion, "blend": own.blend, "by_query_type": variants}
    return base.system.model_copy(update=changed)
