"""Parameter sets at another rerank depth or with another reranker, and the depths to try.

What changes is set at its own path, in the blend of every query type alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fusion_bench.blend import Blend, RerankBlend
from fusion_bench.config.parameters import Parameter, Params, Value
from fusion_bench.experiment.system import System
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.space.parameter_paths import CONDITION

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
        if _strip_conditions(parameter.path).endswith("blend.reranker")
        for name in parameter.choices
    }
    return tuple(sorted(chosen | objective.system.reranker_names))


def is_depth_path(path: str) -> bool:
    """Whether a path is that of a rerank depth."""
    return _strip_conditions(path).endswith("blend.depth")


def max_rerank_depth(system: System) -> int:
    """The greatest rerank depth of any query; 0 = no reranker."""
    blends = (blend for _, blend in _blends_by_prefix(system))
    return max((blend.depth for blend in blends if isinstance(blend, RerankBlend)), default=0)


def at_depth(objective: TuningObjective, params: Params, depth: int) -> Params | None:
    """The same parameter set at another depth; 0 = without a reranker.

    Returns:
        None where it has no reranker whose depth could be set.
    """
    changed = dict(params)
    prefixes = list(_rerank_prefixes(objective.build_system(params)))
    for prefix in prefixes:
        if depth:
            changed = _set_path(changed, f"{prefix}blend.depth", depth)
        else:
            blend = f"{prefix}blend."
            changed = {
                path: value
                for path, value in changed.items()
                if not _strip_conditions(path).startswith(blend)
            } | {f"{blend}method": "none"}
    return changed if prefixes or not depth else None


def with_reranker(objective: TuningObjective, params: Params, reranker: str) -> Params:
    """The same parameter set with another rerank list."""
    changed = dict(params)
    for prefix in _rerank_prefixes(objective.build_system(params)):
        changed = _set_path(changed, f"{prefix}blend.reranker", reranker)
    return changed


def _set_path(params: dict[str, Value], path: str, value: Value) -> dict[str, Value]:
    """A value at a path, whatever condition the path names."""
    return {p: v for p, v in params.items() if _strip_conditions(p) != path} | {path: value}


def _rerank_prefixes(system: System) -> Iterator[str]:
    """The prefix before ``blend`` in the paths of each blend with a reranker."""
    return (p for p, blend in _blends_by_prefix(system) if isinstance(blend, RerankBlend))


def _blends_by_prefix(system: System) -> Iterator[tuple[str, Blend]]:
    if system.by_query_type is None:
        yield "", system.blend
    for name, variant in (system.by_query_type or {}).items():
        yield f"by_query_type.{name}.", variant.blend


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


def _strip_conditions(path: str) -> str:
    return CONDITION.sub("", path)
