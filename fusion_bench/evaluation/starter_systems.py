"""The systems that a first comparison of some lists starts with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, TypeAlias

import numpy as np

from fusion_bench.config.models import parse_model
from fusion_bench.data.grouped_rows import count_within_queries
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import QUESTION, Run
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import describe_dialect, find_engine
from fusion_bench.experiment.system import System
from fusion_bench.experiment.system_words import describe_config, join_names
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


#: The fusion that every other system is compared with, and the one that needs a question's list.
RRF_V1, RRF_V2 = "rrf v1", "rrf v2"
#: A system's keys, as in YAML.
SystemKeys: TypeAlias = dict[str, Any]
#: Name → fusion, of every set of lists.
FUSIONS: Final[dict[str, SystemKeys]] = {
    RRF_V1: {"method": "rrf", "k": 60},
    RRF_V2: {"method": "rrf_v2", "k": 60, "weights": {QUESTION: 2}, "bonus": {1: 0.05, 3: 0.02}},
    "raw scores": {"method": "weighted_score", "normalize": "none", "missing": "skip"},
    "min-max": {"method": "weighted_score", "normalize": "min_max", "missing": "zero"},
    "z-score": {"method": "weighted_score", "normalize": "z_score", "missing": "min"},
}
#: The share of the retrieval term by fused rank.
BANDS: Final[SystemKeys] = {
    "method": "position_aware",
    "tiers": {3: 0.75, 10: 0.60},
    "rest": 0.40,
}
#: Name → blend of a fusion with a reranker; a list alone has the first one only.
BLENDS: Final[dict[str, SystemKeys]] = {
    "replace": {"method": "replace"},
    "linear 0.7": {"method": "linear", "beta": 0.7, "retrieval": "reciprocal_rank"},
    "bands": {**BANDS, "retrieval": "fused"},
    "bands 1/rank": {**BANDS, "retrieval": "reciprocal_rank"},
}


@dataclass(frozen=True)
class StarterSystems:
    """The systems, and what a reader has to know of them.

    Attributes:
        systems: By name.
        baseline: The one that the others are compared with.
        choices: Which systems were left out and why, and which list is the question's.
        lacks_question: Whether RRF v2 was left out, because no list has the role ``question``.
    """

    systems: dict[str, SystemKeys]
    baseline: str
    choices: tuple[str, ...]
    lacks_question: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """The choices, then what each fusion is, and the baseline with each blend."""
        base = {**self.systems[self.baseline], "blend": None}
        explained = [
            sentence
            for name, keys in self.systems.items()
            if ("fusion" in keys if "blend" not in keys else {**keys, "blend": None} == base)
            for sentence in describe_config(name, keys)
        ]
        return (*self.choices, *explained)


def build_starter_systems(
    runs: Sequence[Run], rerankers: Sequence[Run] = (), engine: str | None = None
) -> StarterSystems:
    """Return each list alone, and the usual fusions and blends.

    The fusions are RRF, RRF v2 if a list has the role ``question``, the weighted score of raw and
    of min-max scores, the mean of z-scores, and those of plugin files.

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
    asked = [run.name for run in runs if QUESTION in run.roles]
    methods = {**FUSIONS, **{name: {"method": name} for name in fusions.list_file_methods()}}
    if not asked:
        del methods[RRF_V2]
    systems: dict[str, SystemKeys] = {name: {"runs": [name]} for name in names}
    for name, fusion in methods.items() if len(runs) > 1 else ():
        _refuse_taken(name, systems)
        systems[name] = {"runs": names, "fusion": fusion}
    plain = dict(systems)
    for reranker in rerankers:
        shared = {
            "reranker": reranker.name,
            "depth": max(1, int(np.diff(reranker.offsets).max(initial=1))),
            "missing": "below",
        }
        suffix = f" {reranker.name}" if len(rerankers) > 1 else ""
        for name, system in plain.items():
            for label, blend in islice(BLENDS.items(), None if "fusion" in system else 1):
                reranked = f"{name} {label}{suffix}"
                _refuse_taken(reranked, systems)
                systems[reranked] = {**system, "blend": {**blend, **shared}}
    question = (
        f"{RRF_V2} is left out: no list has the role {QUESTION}. Give it to the list that was "
        f"asked with the user's own question: --role NAME={QUESTION}."
    )
    if asked:
        verb = "has" if len(asked) == 1 else "have"
        question = f"{join_names(asked)} {verb} the role {QUESTION}: {RRF_V2} counts it ×2."
    starter = StarterSystems(
        systems,
        RRF_V1 if len(runs) > 1 else names[0],
        (question,) if len(runs) > 1 else (),
        lacks_question=len(runs) > 1 and not asked,
    )
    return starter if engine is None else _keep_expressible(starter, engine)


def _refuse_taken(name: str, systems: dict[str, SystemKeys]) -> None:
    if name in systems:
        raise ConfigError(f"{name!r} names both a list and a system made of the lists: rename it")


def _keep_expressible(starter: StarterSystems, engine: str) -> StarterSystems:
    """The systems that an engine can express, each list alone among them.

    Raises:
        ConfigError: It can express no fusion of these lists; says what it can.
    """
    dialect = find_engine(engine, where="--engine")
    kept = {}
    for name, keys in starter.systems.items():
        system = parse_model(System, {**keys, "name": name})
        # Whichever list is a vector search.
        kinds = (
            {run: frozenset({SEMANTIC if run == dense else KEYWORD}) for run in system.runs}
            for dense in system.runs
        )
        is_alone = keys.keys() == {"runs"}
        if is_alone or any(dialect.keeps_order(system, roles) for roles in kinds):
            kept[name] = keys
    fused = [name for name, keys in kept.items() if len(keys["runs"]) > 1]
    if not fused:
        raise ConfigError(
            f"--engine {engine}: it can express none of the starter systems. "
            f"{describe_dialect(dialect)}"
        )
    baseline = starter.baseline if starter.baseline in kept else fused[0]
    count = len(starter.systems) - len(kept)
    note = f"{dialect.title} cannot express {count} of {len(starter.systems)} starter systems."
    return replace(starter, systems=kept, baseline=baseline, choices=(note, *starter.choices))
