"""Ablation: the chosen parameters with one at a time back at its default, on the tuning queries.

Unlike an importance over trials, it also measures values that the sampler soon gave up.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusion_bench.config.parameters import Params, Value
from fusion_bench.tune.space.objective import TuningObjective


def reset_means(objective: TuningObjective, chosen: Params) -> Mapping[str, float]:
    """Mean of the measure with one parameter at a time back at the default's value.

    Args:
        objective: On the queries that were tuned on.
        chosen: What was chosen.

    Returns:
        Path → mean, of the parameters that differ from the default and that it has; NaN = such a
        system cannot be computed.
    """
    reset = {
        parameter.path: params
        for parameter in objective.parameters
        if (params := reset_parameter(objective, chosen, parameter.path)) is not None
    }
    if not reset:
        return {}
    means = objective.evaluate_params(list(reset.values())).mean(axis=1).tolist()
    return dict(zip(reset, means, strict=True))


def reset_parameter(objective: TuningObjective, chosen: Params, path: str) -> Params | None:
    """The choice with one parameter back at its default; None = it is there, or has none.

    Where it is a choice that others take part under, those that no longer do go with it, and those
    that now do stand as in the default, or as their method has them.
    """
    chosen = objective.normalize_weights(chosen)
    # The default's weights as the choice would have them: by the ratio that they had.
    free = objective.free_weights(chosen)
    weights = {p: v for p, v in objective.default_params.items() if p in free}
    form = objective.normalize_weights({**chosen, **weights})
    default = {**objective.default_params, **{path: form[path] for path in weights}}
    if path not in chosen or path not in default or chosen[path] == default[path]:
        return None
    wanted: dict[str, Value] = {**default, **chosen, path: default[path]}
    params: dict[str, Value] = {}
    for parameter in objective.parameters:
        if parameter.path in wanted and parameter.is_active(params):
            params[parameter.path] = wanted[parameter.path]
    return params
