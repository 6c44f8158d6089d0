"""Parameters tuned for each query type or intent, against one set of parameters for all.

Each class with enough queries is searched by itself, starting from the parameters for all; the
other classes keep those. The held-out queries decide whether that beats one set for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from fusion_bench.config.parameters import Params
from fusion_bench.config.query_classes import BY_TYPE, ClassKey
from fusion_bench.config.query_types import PREDICTED_TYPE
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.evaluation.ranking.query_classes import resolve_classes
from fusion_bench.experiment.methods.system_methods import PerTypeConfig
from fusion_bench.experiment.system import System
from fusion_bench.tune.search.search import SearchResult
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.class_tuning import ClassTuning
from fusion_bench.tune.validation.held_out.evaluation import HeldOutEvaluation
from fusion_bench.tune.validation.trial_selection import choose_trial, describe_choice
from fusion_bench.tune.validation.verdict import ChosenTrial

#: A class with fewer tuning groups keeps the parameters for all.
LEAST_GROUPS = 5
#: Only these parts of a system can differ by class.
PARTS = ("fusion", "blend")
#: What the search of a class chose, the one that says most first.
CHOICES: Final[tuple[ChosenTrial, ...]] = ("tuned", "default over better trials", "default")

#: A class, its objective and a mask of the queries that may be looked at → its search.
ClassSearch = Callable[[str, TuningObjective, BoolArray], SearchResult]


def tune_by_class(
    evaluation: HeldOutEvaluation, chosen: Trial, search: ClassSearch, key: ClassKey = BY_TYPE
) -> ClassTuning | None:
    """Search each query type or intent by itself, and evaluate all of them together.

    Args:
        evaluation: The objective, its split and the rules.
        chosen: The parameters for all queries.
        search: Runs one search.
        key: By what the parameters differ.

    Returns:
        None where no class has enough queries, or no tuned parameter can differ by class.
    """
    base = _objective_by_class(evaluation.objective, chosen.params)
    masks = _class_masks(base, key)
    enough = _classes_to_tune(evaluation, masks)
    if not enough or not base.parameters or len(masks) < 2:
        return None
    params_by_class: dict[str, Params] = {}
    choices: set[ChosenTrial] = set()
    for name, keep in enough.items():
        result = search(name, base, keep)
        trial = choose_trial(base, result, keep, evaluation.tuning.choose)
        params_by_class[name] = trial.params
        choices.add(describe_choice(result, trial))
    overall = base.evaluate_params([base.default_params])[0]
    by_class: FloatArray = overall.copy()
    for name, params in params_by_class.items():
        by_class[masks[name]] = base.evaluate_params([params])[0][masks[name]]
    return ClassTuning(
        key=key,
        params=params_by_class,
        system=combine_classes(base, params_by_class, key),
        base=base.system,
        values=by_class,
        overall=overall,
        # Of the choices of several classes, the one that says most.
        chosen=next(choice for choice in CHOICES if choice in choices),
    )


def _classes_to_tune(
    evaluation: HeldOutEvaluation, masks: Mapping[str, BoolArray]
) -> dict[str, BoolArray]:
    """The tuning queries of each class that has enough groups of them, and held-out queries."""
    codes, split = evaluation.objective.group_codes, evaluation.split
    return {
        name: mask & split.tune
        for name, mask in masks.items()
        if (mask & split.held_out).any()
        and len(np.unique(codes[mask & split.tune])) >= LEAST_GROUPS
    }


def _objective_by_class(objective: TuningObjective, params: Params) -> TuningObjective:
    """The objective whose default is the parameters for all, over what can differ by class."""
    space = tuple(p for p in objective.parameters if p.path.split(".")[0] in PARTS)
    paths = {parameter.path for parameter in space}
    # A condition on a fixed value either holds or removes its parameter.
    kept = tuple(
        replace(parameter, when=tuple((p, allowed) for p, allowed in parameter.when if p in paths))
        for parameter in space
        if all(p in paths or params.get(p) in allowed for p, allowed in parameter.when)
    )
    return replace(objective, system=objective.build_system(params), parameters=kept)


def _class_masks(objective: TuningObjective, key: ClassKey) -> Mapping[str, BoolArray]:
    """(Q,) by class: the queries that a system by class would answer with its parameters."""
    runs = objective.runs
    types = objective.system.types
    field = PREDICTED_TYPE if key is BY_TYPE and types == "predicted" else key.field
    known = {value for value in runs.values_of(field) if value is not None} | {key.fallback}
    classes = resolve_classes(runs, key, known, types)
    return {name: classes == name for name in sorted(set(classes.tolist()))}


def combine_classes(
    base: TuningObjective, params_by_class: Mapping[str, Params], key: ClassKey = BY_TYPE
) -> System:
    """One system that answers each class by its own parameters, the others by those for all."""
    systems = {key.fallback: base.system} | {
        name: base.build_system(params) for name, params in params_by_class.items()
    }
    variants = {
        name: PerTypeConfig(fusion=system.fusion, blend=system.blend)
        for name, system in sorted(systems.items())
    }
    fallback = systems[key.fallback]
    changed = {"fusion": fallback.fusion, "blend": fallback.blend, key.key: variants}
    return base.system.model_copy(update=changed)
