"""Parameter sets at another rerank depth or with another reranker, and the depths to try.

What changes is set at its own path, in the blend of every query type alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusion_bench.blend import RerankBlend
from fusion_bench.config.parameters import Parameter, Params, Value
from fusion_bench.experiment.system import System
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.space.parameter_paths import strip_conditions

#: Rerank depths tried where the space does not have them; 0 = no reranker.
LADDER = (0, 1, 2, 3, 5, 7, 10, 14, 20, 30, 40, 50, 60, 75, 100)
#: Depths taken from a range.
STEPS = 14


def depth_ladder(
    objective: TuningObjective, asked: Sequence[int] | None, also: Sequence[int]
) -> tuple[int, ...]:
    """The depths of a front, 0 first.

    What the space allows, where it says so, otherwise :data:`LADDER`. Beyond the largest pool of
    candidates a greater depth changes nothing, so only the first such depth stays.

    Args:
        objective: What is tuned.
        asked: Instead of all that.
        also: Depths that must be there: the default's, the choice's.
    """
    listed = asked or _allowed_depths(objective.parameters) or LADDER
    pool = int(np.diff(objective.runs.offsets).max())
    enough = min((depth for depth in listed if depth >= pool), default=pool)
    return tuple(sorted({0, *(depth for depth in (*listed, *also) if depth <= enough)}))


def reranker_names(objective: TuningObjective) -> tuple[str, ...]:
    """The rerank lists that the default or the space names."""
    chosen = {
        str(name)
        for parameter in objective.parameters
        if strip_conditions(parameter.path).endswith("blend.reranker")
        for name in parameter.choices
    }
    return tuple(sorted(chosen | objective.system.reranker_names))


def is_depth_path(path: str) -> bool:
    """Whether a path is that of a rerank depth."""
    return strip_conditions(path).endswith("blend.depth")


def max_rerank_depth(system: System) -> int:
    """The greatest rerank depth of any query; 0 = no reranker."""
    return max((blend.depth for blend in _rerank_blends(system).values()), default=0)


def at_depth(objective: TuningObjective, params: Params, depth: int) -> Params | None:
    """The same parameter set at another depth; 0 = without a reranker.

    Returns:
        None where it has no reranker whose depth could be set.
    """
    prefixes = _rerank_blends(objective.build_system(params))
    if depth:
        return set_in_blends(objective, params, "depth", depth) if prefixes else None
    for prefix in prefixes:
        blend = f"{prefix}blend."
        kept = {p: v for p, v in params.items() if not strip_conditions(p).startswith(blend)}
        params = kept | {f"{blend}method": "none"}
    return params


def set_in_blends(objective: TuningObjective, params: Params, name: str, value: Value) -> Params:
    """The same parameter set with another value in the blends that have a reranker.

    Args:
        objective: What is tuned.
        params: Path → value.
        name: What is set, whatever condition its path names: ``depth`` or ``reranker``.
        value: What it is set to.
    """
    for prefix in _rerank_blends(objective.build_system(params)):
        path = f"{prefix}blend.{name}"
        params = {p: v for p, v in params.items() if strip_conditions(p) != path} | {path: value}
    return params


def _rerank_blends(system: System) -> dict[str, RerankBlend]:
    """Each blend with a reranker, by what stands before ``blend`` in its paths."""
    by_class = (system.class_configs or {}).items()
    blends = {f"{system.class_field}.{name}.": config.blend for name, config in by_class}
    return {
        prefix: blend
        for prefix, blend in (blends or {"": system.blend}).items()
        if isinstance(blend, RerankBlend)
    }


def _allowed_depths(parameters: Sequence[Parameter]) -> tuple[int, ...]:
    """Depths in the ranges that the space has for them; none where it has none."""
    depths: set[int] = set()
    for parameter in parameters:
        if not is_depth_path(parameter.path):
            continue
        if parameter.kind == "choice":
            depths |= {int(value) for value in parameter.choices if isinstance(value, int)}
        else:
            low, high = parameter.bounds
            ladder = np.geomspace(max(low, 1), high, STEPS)
            depths |= {int(d) for d in np.rint(ladder) if parameter.contains(int(d))} | {int(low)}
    return tuple(sorted(depths))
