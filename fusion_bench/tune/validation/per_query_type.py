"""Parameters tuned for each query type, against one set of parameters for all.

Each type with enough queries is searched by itself, starting from the parameters for all; the other
types keep those. The held-out queries decide whether that beats one set for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from fusion_bench.config.parameters import Params
from fusion_bench.config.query_types import UNSURE, type_of
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.experiment.system import System
from fusion_bench.experiment.system_methods import PerTypeConfig
from fusion_bench.report.tuning_records import tuning_report as model
from fusion_bench.tune.search.search import SearchResult
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.held_out import HeldOutEvaluation
from fusion_bench.tune.validation.trial_selection import choose_trial

#: A type with fewer tuning groups keeps the parameters for all.
LEAST_GROUPS = 5
#: Only these parts of a system can differ by type.
PARTS = ("fusion", "blend")

#: A type, its objective and a mask of the queries that may be looked at → its search.
TypeSearch = Callable[[str, TuningObjective, BoolArray], SearchResult]


def tune_by_type(
    evaluation: HeldOutEvaluation, chosen: Trial, search: TypeSearch
) -> model.PerTypeResult | None:
    """Search each query type by itself, and evaluate all of them together.

    Args:
        evaluation: The objective, its split and the rules.
        chosen: The parameters for all queries.
        search: Runs one search.

    Returns:
        None where no type has enough queries, or no tuned parameter can differ by type.
    """
    base = _objective_by_type(evaluation.objective, chosen.params)
    masks = _type_masks(base)
    codes, split = evaluation.objective.group_codes, evaluation.split
    enough = {
        name: mask & split.tune
        for name, mask in masks.items()
        if (mask & split.held_out).any()
        and len(np.unique(codes[mask & split.tune])) >= LEAST_GROUPS
    }
    if not enough or not base.parameters or len(masks) < 2:
        return None
    params_by_type: dict[str, Params] = {}
    for name, keep in enough.items():
        result = search(name, base, keep)
        trial = choose_trial(base, result, keep, evaluation.tuning.choose)
        params_by_type[name] = trial.params
    objective = evaluation.objective
    default = objective.evaluate_params([objective.default_params])[0]
    overall = base.evaluate_params([base.default_params])[0]
    by_type: FloatArray = overall.copy()
    for name, params in params_by_type.items():
        by_type[masks[name]] = base.evaluate_params([params])[0][masks[name]]
    over_global = evaluation.measure_gain(by_type, overall, split.held_out)
    return model.PerTypeResult(
        params={name: dict(params) for name, params in params_by_type.items()},
        config=combine_types(base, params_by_type).resolved_config,
        gain=evaluation.measure_gain(by_type, default, split.held_out),
        over_global=over_global,
        verdict=evaluation.decide_verdict(over_global),
    )


def _objective_by_type(objective: TuningObjective, params: Params) -> TuningObjective:
    """The objective whose default is the parameters for all, over what can differ by type."""
    space = tuple(p for p in objective.parameters if p.path.split(".")[0] in PARTS)
    paths = {parameter.path for parameter in space}
    # A condition on a fixed value either holds or removes its parameter.
    kept = tuple(
        replace(parameter, when=tuple((p, allowed) for p, allowed in parameter.when if p in paths))
        for parameter in space
        if all(p in paths or params.get(p) in allowed for p, allowed in parameter.when)
    )
    return replace(objective, system=objective.build_system(params), parameters=kept)


def _type_masks(objective: TuningObjective) -> Mapping[str, BoolArray]:
    """(Q,) by type: the queries that a system by type would answer with that type's parameters."""
    runs = objective.runs
    known = {name for name in runs.types if name is not None} | {UNSURE}
    types = [
        type_of(query_type, confidence, known)
        for query_type, confidence in zip(runs.types, runs.confidences, strict=True)
    ]
    return {
        name: np.array([query_type == name for query_type in types]) for name in sorted(set(types))
    }


def combine_types(base: TuningObjective, params_by_type: Mapping[str, Params]) -> System:
    """One system that answers each type by its own parameters, the others by those for all."""
    systems = {UNSURE: base.system} | {
        name: base.build_system(params) for name, params in params_by_type.items()
    }
    variants = {
        name: PerTypeConfig(fusion=system.fusion, blend=system.blend)
        for name, system in sorted(systems.items())
    }
    unsure = systems[UNSURE]
    changed = {"fusion": unsure.fusion, "blend": unsure.blend, "by_query_type": variants}
    return base.system.model_copy(update=changed)
