"""What each number of a choice is worth: the choice with that number alone back at its default.

An importance over trials says little of a value that the sampler soon left alone; this is asked of
the queries, on the tuning part.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusion_bench.config.parameters import Params, Value
from fusion_bench.tune.space.objective import TuningObjective

__all__ = ["reset_means", "reset_parameter"]


def reset_means(objective: TuningObjective, chosen: Params) -> Mapping[str, float]:
    """Mean of the measure with one parameter at a time back at the default's value.

    Args:
        objective: On the queries that were tuned on.
        chosen: What was chosen.

    Returns:
        Path → mean, of the parameters that differ from the default and that it has; NaN = such a
        system cannot be computed.
    """
    changed = {
        one.path: reset_parameter(objective, chosen, one.path) for one in objective.parameters
    }
    asked = {path: params for path, params in changed.items() if params is not None}
    if not asked:
        return {}
    means = objective.evaluate_params(list(asked.values())).mean(axis=1).tolist()
    return dict(zip(asked, means, strict=True))


def reset_parameter(objective: TuningObjective, chosen: Params, path: str) -> Params | None:
    """The choice with one parameter back at its default; None = it is there, or has none.

    Where it is a choice that others take part under, those that no longer do go with it, and those
    that now do stand as in the default, or as their method has them.
    """
    chosen = objective.normalize_weights(chosen)
    default = _in_the_same_form(objective, chosen)
    if path not in chosen or path not in default or chosen[path] == default[path]:
        return None
    wanted: dict[str, Value] = {**default, **chosen, path: default[path]}
    found: dict[str, Value] = {}
    for one in objective.parameters:
        if one.path in wanted and one.is_active(found):
            found[one.path] = wanted[one.path]
    return found


def _in_the_same_form(objective: TuningObjective, chosen: Params) -> Params:
    """The default, its weights as the choice would have them: by the ratio that they had."""
    weights = {
        p: v for p, v in objective.default_params.items() if p in objective.free_weights(chosen)
    }
    form = objective.normalize_weights({**chosen, **weights})
    return {**objective.default_params, **{path: form[path] for path in weights}}
