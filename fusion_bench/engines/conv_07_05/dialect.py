"""CONV-07-05: fusion of keyword, semantic and graph search, then a reranker that replaces it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from fusion_bench.blend.none import NoBlend
from fusion_bench.blend.replace import Replace
from fusion_bench.engines._dialects.blends import check_blend, fit_blend
from fusion_bench.engines._dialects.configuration import (
    check_writable,
    most_results,
    read_json,
    refuse_unreadable,
    weights_by_source,
    windows_by_source,
    write_json,
)
from fusion_bench.engines._dialects.translation import Draft
from fusion_bench.engines.conv_07_05._strategies import STRATEGIES, RRFFusion, WeightedScoreFusion
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.fuse.weighted_score import WeightedScore

FILE = "search.json"
#: What is written of the blend, beside its reranker.
WRITABLE = frozenset({"depth", "always_rerank", "skip_limit"})
#: How far a sum may be from 1 by rounding.
ROUNDING = 1e-12


@dialects.register
class Conv0705(Dialect):
    """CONV-07-05, with the types and defaults of CONV-03-05 1.0.0."""

    name = "conv-07-05"
    title = "CONV-07-05"
    version = "1.0.0"
    source = "https://plg.uwaterloo.ca/~gvcormac/cormacksigir09-rrf.pdf"
    methods = (RRFFusion, WeightedScoreFusion)
    defaults: ClassVar[Mapping[str, Any]] = {"top_k": 20}  # limit
    blends = (Replace,)
    blend_defaults: ClassVar[Mapping[str, Any]] = {
        "method": "replace",
        "depth": 50,
        "tail": "drop",
        "always_rerank": False,
        "skip_limit": 20,
    }
    precision = "float64"
    ignores = (
        "More than three lists cannot be said.",
        "A bonus for top ranks cannot be said.",
        "The reranker replaces the fused score, so no blend with it can be said.",
    )

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """``RRFFusion`` for reciprocal ranks, ``WeightedScoreFusion`` for means of raw scores."""
        draft = Draft(cls, system, roles)
        if len(draft.sources) > len(STRATEGIES):
            return draft.refuse(f"runs: at most {len(STRATEGIES)} lists are fused")
        ours = draft.fusion
        fusion: dict[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
        elif isinstance(ours, WeightedScore):
            if ours.normalize.method != "none":
                return draft.refuse(f"normalize: {cls.title} has no {ours.normalize.method!r}")
            if ours.missing != "skip":
                draft.lose(f"missing: {ours.missing!r} becomes 'skip'")
            fusion = {"method": "WeightedScoreFusion", "weights": share(draft.weights)}
        elif (ranks := draft.find_reciprocal_ranks()) is not None:
            constant = draft.choose_rank_constant(ranks, 1)
            fusion = {"method": "RRFFusion", "k": constant, "weights": share(ranks.weights)}
        else:
            return draft.refuse_fusion()
        fusion["strategies"] = assign_strategies(draft.sources, draft.roles)
        windows = draft.choose_windows(by_source=True)
        fit_blend(draft, WRITABLE)
        cls._fit_skip_limit(draft, windows["top_k"])
        return draft.finish(fusion, **windows)

    @classmethod
    def _fit_skip_limit(cls, draft: Draft, limit: int) -> None:
        """The reranker is skipped where there are at most as many candidates as results."""
        blend = draft.blend
        if isinstance(blend, Replace) and blend.skip_limit != limit:
            if not blend.always_rerank:
                draft.lose(f"blend.skip_limit: {limit} instead of {blend.skip_limit}, as top_k")
            draft.blend = blend.model_copy(update={"skip_limit": limit})

    @classmethod
    def write(cls, system: System) -> Configuration:
        """The settings as JSON."""
        check_writable(cls, system)
        check_blend(cls, system, WRITABLE)
        weights, windows = weights_by_source(system), windows_by_source(system)
        slots = _written_strategies(system)
        free = [slot for slot in STRATEGIES if slot not in set(slots.values())]
        fusion, blend = system.fusion, system.blend
        settings: dict[str, Any] = {
            "fusion": fusion.method,
            "strategies": {
                slots[name]: {"source": name, "limit": windows[name]} for name in system.runs
            },
            "weights": {slots[name]: weight for name, weight in weights.items()},
        }
        rest = max(0.0, 1 - sum(weights.values()))
        settings["weights"] |= {slot: rest * (slot == free[0]) for slot in free}
        if isinstance(fusion, RRFFusion):
            settings["rrf"] = {"k": fusion.k, "normalizeScores": fusion.normalize_scores}
        settings["rerank"] = {"enabled": not isinstance(blend, NoBlend)}
        if isinstance(blend, Replace):
            always = {"alwaysRerank": blend.always_rerank}
            settings["rerank"] |= {"model": blend.reranker, "topK": blend.depth, **always}
        settings["options"] = {"limit": most_results(system)}
        return Configuration(
            {FILE: write_json(settings)},
            (
                "new RRFFusion(k).fuse(resultSets, weights), then reranker.rerank(query, fused, "
                "limit); weights and k as in the file.",
                "The keys are those of SearchWeights, RRFConfig, RerankConfig and SearchOptions in "
                "CONV-03-05, which allows a limit and a topK of 1 to 100.",
            ),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from such settings.

        Raises:
            ConfigError: They are none.
        """
        settings = read_json(files, FILE)
        with refuse_unreadable(FILE, cls.title):
            strategies = settings["strategies"]
            names = {slot: entry["source"] for slot, entry in strategies.items()}
            weights = settings["weights"]
            fusion: dict[str, Any] = {
                "method": settings["fusion"],
                "weights": {name: weights[slot] for slot, name in names.items()},
                "strategies": {name: slot for slot, name in names.items()},
            }
            if "rrf" in settings:
                rrf = settings["rrf"]
                fusion |= {"k": rrf["k"], "normalize_scores": rrf["normalizeScores"]}
            limit, rerank = settings["options"]["limit"], settings["rerank"]
            system = {
                "runs": [*names.values()],
                "dialect": cls.name,
                "fusion": fusion,
                "depth": {entry["source"]: entry["limit"] for entry in strategies.values()},
                "top_k": limit,
            }
            if rerank["enabled"]:
                skipping = {"always_rerank": rerank["alwaysRerank"], "skip_limit": limit}
                blend = {"reranker": rerank["model"], "depth": rerank["topK"], **skipping}
                system["blend"] = blend
        return system


def _written_strategies(system: System) -> dict[str, str]:
    """Source → strategy of a system that is written.

    Raises:
        ConfigError: It has more than three sources.
    """
    given = system.fusion.model_dump().get("strategies") or {}
    known = {name: frozenset({strategy}) for name, strategy in given.items()}
    slots = assign_strategies(system.runs, known)
    if len(slots) < len(system.runs):
        raise ConfigError(f"system {system.name!r}: runs: at most {len(STRATEGIES)} lists")
    return slots


def assign_strategies(
    sources: Sequence[str], roles: Mapping[str, frozenset[str]]
) -> dict[str, str]:
    """Source → the strategy of its role, or one that is free; without sources beyond three.

    Args:
        sources: Their names.
        roles: By source.
    """
    slots: dict[str, str] = {}
    for slot in STRATEGIES:
        fitting = [name for name in sources if slot in roles.get(name, ()) and name not in slots]
        slots |= dict.fromkeys(fitting[:1], slot)
    free = [slot for slot in STRATEGIES if slot not in set(slots.values())]
    rest = [name for name in sources if name not in slots]
    slots |= dict(zip(rest, free, strict=False))
    return {name: slots[name] for name in sources if name in slots}


def share(weights: Mapping[str, float]) -> dict[str, float]:
    """The weights divided by their sum, which must be 1."""
    total = sum(weights.values())
    if abs(total - 1) <= ROUNDING:
        return dict(weights)
    return {name: weight / total for name, weight in weights.items()}
