"""The systems that a first comparison of some lists starts with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from fusion_bench.config.models import parse_model
from fusion_bench.data.grouped_rows import count_within_queries
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Dialect, describe_dialect, find_engine
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import KEYWORD, SEMANTIC, fusions

#: Logits beyond this are none: their sigmoid is 0 or 1 in single precision.
MAX_LOGIT: Final = 17.0
#: Scores count as equal up to this.
SAME: Final = 1e-9


def guess_score_space(run: Run) -> tuple[ScoreSpace, str]:
    """The score space of a rerank list, and what is true of every score; the first rule that fits.

    ``order``: the scores of a list of n count n, n−1 … 1, are 1, 1/2 … 1/n, or −1, −2 … −n.
    ``unit``: all lie in [0, 1]. ``log_prob``: none is above 0. ``logit``: both signs, and none
    beyond ±17. Anything else is ``unbounded``.
    """
    if _follow_ranks(run):
        return "order", "the scores only count the ranks"
    low, high = float(run.scores.min()), float(run.scores.max())
    if low >= 0 and high <= 1:
        return "unit", "every score lies in [0, 1]"
    if high <= 0:
        return "log_prob", "no score is above 0"
    limits = f"the scores reach from {low:.4g} to {high:.4g}"
    if low < 0 and max(-low, high) <= MAX_LOGIT:
        return "logit", f"{limits}, both signs and none beyond ±{MAX_LOGIT:g}"
    return "unbounded", limits


def _follow_ranks(run: Run) -> bool:
    """Whether every score is a function of its rank and of the length of its list."""
    sizes = np.diff(run.offsets)
    if sizes.max(initial=0) < 2:
        return False
    ranks = count_within_queries(run.offsets).astype(np.float64)
    length = np.repeat(sizes, sizes)
    candidates: tuple[FloatArray, ...] = (length + 1 - ranks, 1 / ranks, -ranks)
    return any(np.allclose(run.scores, values, rtol=0, atol=SAME) for values in candidates)


#: The k of reciprocal rank fusion; the first one is that of the baseline.
RRF_CONSTANTS: Final = (60, 10)
#: How much more one list counts in a weighted system.
DOUBLE_WEIGHT: Final = 2
#: The share of the rerank score in a reranked system.
RERANK_WEIGHT: Final = 0.7

#: A system's keys, as in YAML.
SystemKeys: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class StarterSystems:
    """The systems, and what a reader has to know of them.

    Attributes:
        systems: By name.
        baseline: The one that the others are compared with.
        notes: What the names stand for, and which system was left out and why.
    """

    systems: dict[str, SystemKeys]
    baseline: str
    notes: tuple[str, ...]


def build_starter_systems(
    runs: Sequence[Run], rerankers: Sequence[Run] = (), engine: str | None = None
) -> StarterSystems:
    """Each list alone, and the usual fusions, all with and without each reranker.

    The fusions are RRF at k 60 and 10, RRF in which one list counts twice, min-max and theoretical
    min-max convex combinations, a mean of z-scores, and those of plugin files.

    Args:
        runs: At least two lists, or one and a reranker.
        rerankers: Rerank lists.
        engine: Only systems that this search engine can express, and each list; None = all.

    Raises:
        ConfigError: There is nothing to compare, or two things have one name.
    """
    if not runs or (len(runs) == 1 and not rerankers):
        raise ConfigError("at least two lists are needed, or one list and a reranker: name another")
    names = [run.name for run in runs]
    systems: dict[str, SystemKeys] = {name: {"runs": [name]} for name in names}
    notes: list[str] = []
    if len(runs) > 1:
        for name, fusion in _fusions(runs):
            _refuse_taken(name, systems)
            systems[name] = {"runs": names, "fusion": fusion}
        notes += _fusion_notes(runs, systems)
    baseline = f"rrf k={RRF_CONSTANTS[0]}" if len(runs) > 1 else names[0]
    plain = dict(systems)
    for reranker in rerankers:
        for name, system in plain.items():
            reranked = f"{name} + {reranker.name}"
            _refuse_taken(reranked, systems)
            systems[reranked] = {**system, "blend": _rerank_blend(reranker)}
        notes.append(
            f"+ {reranker.name}: the first {_rerank_depth(reranker)} documents by "
            f"{RERANK_WEIGHT:g} × {reranker.name} + {1 - RERANK_WEIGHT:.2g} / rank; documents "
            "without a score stay below."
        )
    starter = StarterSystems(systems, baseline, tuple(notes))
    return starter if engine is None else _keep_expressible(starter, engine)


def _refuse_taken(name: str, systems: dict[str, SystemKeys]) -> None:
    if name in systems:
        raise ConfigError(f"{name!r} names both a list and a system made of the lists: rename it")


def _fusions(runs: Sequence[Run]) -> Iterator[tuple[str, SystemKeys]]:
    """Name and keys of each fusion."""
    first, *others = RRF_CONSTANTS
    yield f"rrf k={first}", {"method": "rrf", "k": first}
    for k in others:
        yield f"rrf k={k}", {"method": "rrf", "k": k}
    for run in runs:
        weights = {other.name: DOUBLE_WEIGHT if other is run else 1 for other in runs}
        yield f"rrf {run.name} x{DOUBLE_WEIGHT}", {"method": "rrf", "k": first, "weights": weights}
    convex = {"method": "weighted_score", "missing": "zero"}
    yield "convex min-max", {**convex, "normalize": "min_max"}
    floors = {run.name: score_floor(run) for run in runs}
    if None not in floors.values():
        theoretical = {"method": "theoretical_min_max", "lo": floors}
        yield "convex theoretical", {**convex, "normalize": theoretical}
    yield "z-score", {"method": "weighted_score", "missing": "min", "normalize": "z_score"}
    yield from ((name, {"method": name}) for name in fusions.list_file_methods())


def score_floor(run: Run) -> float | None:
    """The least score that a source can give, by its values; None = they do not tell.

    0 where no score is negative, as of BM25; −1 where all lie in [−1, 1], as cosines do.
    """
    low, high = float(run.scores.min(initial=0.0)), float(run.scores.max(initial=0.0))
    if low >= 0:
        return 0.0
    return -1.0 if low >= -1 and high <= 1 else None


def _fusion_notes(runs: Sequence[Run], systems: dict[str, SystemKeys]) -> Iterator[str]:
    """What the names of the fusions stand for, and why one of them is missing."""
    yield (
        f"x{DOUBLE_WEIGHT}: RRF with k={RRF_CONSTANTS[0]} in which that list counts "
        "twice. convex: mean of scaled scores, equal weights, 0 for a list that "
        "did not return the document. z-score: likewise, with the list's least score instead of 0."
    )
    if theoretical := systems.get("convex theoretical"):
        floors = theoretical["fusion"]["normalize"]["lo"]
        listed = ", ".join(f"{name} {floor:g}" for name, floor in floors.items())
        yield f"convex theoretical takes as the least possible score: {listed}."
        return
    unknown = [run for run in runs if score_floor(run) is None]
    ranges = (f"{r.name} has {r.scores.min():.4g} to {r.scores.max():.4g}" for r in unknown)
    yield (
        "convex theoretical is left out: it needs scores of at least 0 or in [-1, 1], and "
        f"{' and '.join(ranges)}."
    )


def _rerank_blend(reranker: Run) -> SystemKeys:
    """The first documents by rerank score and fused rank, as deep as the list goes."""
    return {
        "method": "linear",
        "reranker": reranker.name,
        "depth": _rerank_depth(reranker),
        "beta": RERANK_WEIGHT,
        "retrieval": "reciprocal_rank",
        "missing": "below",
    }


def _rerank_depth(reranker: Run) -> int:
    """The most documents that it scored for a query."""
    return max(1, int(np.diff(reranker.offsets).max(initial=1)))


def _keep_expressible(starter: StarterSystems, engine: str) -> StarterSystems:
    """The systems that an engine can express, each list alone among them.

    Raises:
        ConfigError: It can express no fusion of these lists; says what it can.
    """
    dialect = find_engine(engine, where="--engine")
    kept = {
        name: keys
        for name, keys in starter.systems.items()
        if keys.keys() == {"runs"} or _is_expressible(dialect, name, keys)
    }
    fused = [name for name, keys in kept.items() if len(keys["runs"]) > 1]
    if not fused:
        raise ConfigError(
            f"--engine {engine}: it can express none of the starter systems. "
            f"{describe_dialect(dialect)}"
        )
    baseline = starter.baseline if starter.baseline in kept else fused[0]
    count = len(starter.systems) - len(kept)
    note = f"{dialect.title} cannot express {count} of {len(starter.systems)} starter systems."
    return StarterSystems(kept, baseline, (note, *starter.notes))


def _is_expressible(dialect: type[Dialect], name: str, keys: SystemKeys) -> bool:
    """Whether an engine orders as the system does, whichever list is a vector search."""
    system = parse_model(System, {**keys, "name": name})
    kinds = (
        {run: frozenset({SEMANTIC if run == dense else KEYWORD}) for run in system.runs}
        for dense in system.runs
    )
    return any(dialect.keeps_order(system, roles) for roles in kinds)
