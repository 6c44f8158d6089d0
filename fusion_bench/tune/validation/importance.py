"""Importance of parameters, by Optuna's PED-ANOVA."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fusion_bench.config.parameters import Parameter, Params
from fusion_bench.tune.search.samplers import optuna_distribution

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
        trials: (T,) parameter sets.
        values: (T,) the mean of each; NaN = could not be computed, and is left out.

    Returns:
        Path → share, adding up to 1; empty where there are too few trials, or none differs.
    """
    done = [
        (params, value)
        for params, value in zip(trials, values, strict=True)
        # The default may lie outside a narrowed space.
        if not math.isnan(value)
        and all(p.contains(params[p.path]) for p in parameters if p.path in params)
    ]
    varied = [
        parameter
        for parameter in parameters
        if all(parameter.path in params for params, _ in done)
        and len({repr(params[parameter.path]) for params, _ in done}) > 1
    ]
    if len(done) < LEAST_TRIALS or not varied or len({value for _, value in done}) < 2:
        return {}
    if len(varied) == 1:
        return {varied[0].path: 1.0}
    shares = _ped_anova(varied, done)
    total = sum(shares.values())
    return {} if not total > 0 else {path: share / total for path, share in shares.items()}


def _ped_anova(
    parameters: Sequence[Parameter], trials: Sequence[tuple[Params, float]]
) -> Mapping[str, float]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = {parameter.path: optuna_distribution(parameter) for parameter in parameters}
    study = optuna.create_study(direction="maximize")
    for params, value in trials:
        known = {path: params[path] for path in space}
        study.add_trial(optuna.create_trial(params=known, distributions=space, value=value))
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    return dict(optuna.importance.get_param_importances(study, evaluator=evaluator))
