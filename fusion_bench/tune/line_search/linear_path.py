"""The line through a setting along one of its parameters, where scores go along lines at all.

Weights and bonuses move the fused scores; shares move the blended ones while the fused list stands.
Numbers of one query type move only that type's queries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fusion_bench.config.parameters import Parameter, Params, Value
from fusion_bench.evaluation.scores import by_type, rank
from fusion_bench.experiment.system import System
from fusion_bench.tune.line_search.blended_line import beside
from fusion_bench.tune.line_search.fused_line import fused_line
from fusion_bench.tune.line_search.score_lines import Line
from fusion_bench.tune.space.objective import Problem
from fusion_bench.tune.space.parameter_paths import CONDITION, ENTRY, TYPE_WEIGHT, TYPED, WEIGHT

__all__ = ["Spot", "is_weight", "line", "spot"]

#: Documents that a blend weighs against each other.
BLENDED = 0


@dataclass(frozen=True, eq=False)
class Spot:
    """What a parameter speaks of.

    Attributes:
        path: In the plain system.
        at: Its value → the plain system, everything else standing still.
        problem: On the queries that such a system answers.
        share: Of all queries.
    """

    path: str
    at: Callable[[Value], System]
    problem: Problem
    share: float


def is_weight(path: str) -> bool:
    """Whether a path is that of a source's weight, for all queries or for one type's."""
    path = CONDITION.sub("", path)
    if typed := TYPED.fullmatch(path):
        path = typed[2]
    return bool(WEIGHT.fullmatch(path) or TYPE_WEIGHT.fullmatch(path))


def spot(problem: Problem, params: Params, parameter: Parameter) -> Spot | None:
    """What a parameter speaks of; None = of no query here.

    Args:
        problem: On the queries that are tuned on.
        params: Everything else.
        parameter: A number.
    """
    path, own = CONDITION.sub("", parameter.path), None
    if typed := TYPED.fullmatch(path):
        own, path = typed[1], typed[2]
    elif weight := TYPE_WEIGHT.fullmatch(path):
        own = weight[1]

    def at(value: Value) -> System:
        system = problem.build({**params, parameter.path: value})
        return system if own is None else system.of_type(own)

    if own is None:
        return Spot(path, at, problem, 1.0)
    for query_type, index, runs in by_type(problem.system, problem.runs):
        if query_type == own:
            share = len(index) / len(problem.runs.queries)
            return Spot(path, at, replace(problem, runs=runs), share)
    return None


def line(problem: Problem, params: Params, parameter: Parameter) -> Line | None:
    """The line through ``params`` along one parameter; None = the scores are no such fractions.

    Args:
        problem: On the queries that are tuned on.
        params: Where the line passes through.
        parameter: A real number without steps.

    Returns:
        On the queries that the parameter speaks of (see :func:`spot`).
    """
    if parameter.kind != "float" or parameter.step is not None:
        return None
    low, high = parameter.bounds
    here = spot(problem, params, parameter)
    if low == high or here is None:
        return None
    system, path = here.at(high), here.path
    if system.types is not None or system.min_relevance is not None:
        return None
    weight = WEIGHT.fullmatch(path) or TYPE_WEIGHT.fullmatch(path)
    entry = ENTRY.fullmatch(path)
    value_of = entry[1] if entry is not None and entry[3] == "value" else None
    if weight or value_of == "fusion.bonus":
        return _along_fused(here, weight[weight.re.groups] if weight else None, low, high)
    if value_of == "blend.tiers" or path in {"blend.beta", "blend.rest"}:
        return _along_share(here, low, high)
    return None


def _along_fused(here: Spot, source: str | None, low: float, high: float) -> Line | None:
    """Along what moves the fused scores: by the fusion's compiled form at two places."""
    places = [low + share * (high - low) for share in (0.25, 0.75)]
    systems = [here.at(place) for place in places]
    views = [system.view(here.problem.runs) for system in systems]
    if len(views[0].sources) < 2 or views[0].sources != views[1].sources:
        return None
    found = fused_line(views[0], [system.fusion for system in systems], places, source)
    if found is None:
        return None
    return beside(found, systems[0], here.problem.spaces, here.problem.measure)


def _along_share(here: Spot, low: float, high: float) -> Line | None:
    """Along a share of a blend: the fused list stands, and two points tell a straight line."""
    runs, spaces = here.problem.runs, here.problem.spaces
    if runs.ties == "first_seen":
        return None  # ties keep the fused order, and lines know that of storage only
    first, last = (rank(here.at(place), runs, spaces) for place in (low, high))
    moving = first.tiers == BLENDED
    b = np.where(moving, (last.deciding - first.deciding) / (high - low), 0.0)
    a = np.where(moving, first.deciding - low * b, 0.0)
    placed = np.where(moving, 0, first.placed)
    size = len(a)
    return Line(first.runs, a, b, np.ones(size), np.zeros(size), moving, placed, first.top_k)
