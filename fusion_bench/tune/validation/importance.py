"""Which parameters the better trials agree on; Optuna's PED-ANOVA, handed plain numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fusion_bench.config.parameters import Parameter, Params
from fusion_bench.tune.search.samplers import optuna_distribution

__all__ = ["parameter_importances"]

#: Fewer trials tell nothing.
LEAST_TRIALS = 20


def parameter_importances(
    parameters: Sequence[Parameter], trials: Sequence[Params], values: Sequence[float]
) -> Mapping[str, float]:
    """Share of each parameter that takes part in every trial, the greatest first.

    Source: Watanabe, Bansal and Hutter, "PED-ANOVA: Efficiently Quantifying Hyperparameter
    Importance in Arbitrary Subspaces", IJCAI 2023.

    Args:
        parameters: The space.
        trials: (T,) settings.
        values: (T,) what each was worth; NaN = could not be computed, and is left out.

    Returns:
        Path → share, adding up to 1; empty where there are too few trials, or none differs.
    """
    done = [
        (params, value)
        for params, value in zip(trials, values, strict=True)
        if not math.isnan(value) and _is_inside_space(parameters, params)
    ]
    always = [one for one in parameters if all(one.path in params for params, _ in done)]
    always = [one for one in always if len({repr(params[one.path]) for params, _ in done}) > 1]
    if len(done) < LEAST_TRIALS or not always or len({value for _, value in done}) < 2:
        return {}
    if len(always) == 1:
        return {always[0].path: 1.0}
    found = _ped_anova(always, done)
    total = sum(found.values())
    return {} if not total > 0 else {path: share / total for path, share in found.items()}


def _is_inside_space(parameters: Sequence[Parameter], params: Params) -> bool:
    """The default may lie outside a narrowed space."""
    known = {one.path: one for one in parameters}
    return all(known[path].contains(value) for path, value in params.items() if path in known)


def _ped_anova(
    parameters: Sequence[Parameter], done: Sequence[tuple[Params, float]]
) -> Mapping[str, float]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = {one.path: optuna_distribution(one) for one in parameters}
    study = optuna.create_study(direction="maximize")
    for params, value in done:
        own = {path: params[path] for path in space}
        study.add_trial(optuna.create_trial(params=own, distributions=space, value=value))
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    return dict(optuna.importance.get_param_importances(study, evaluator=evaluator))
