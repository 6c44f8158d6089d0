"""CONV-07-05: fusion of keyword, semantic and graph search, then a reranker that replaces it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fusion_bench.config.models import Weight
from fusion_bench.config.parameters import Parameter, integer
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    most_results,
    read_json,
    refuse_unreadable,
    weights_by_source,
    windows_by_source,
    write_json,
)
from fusion_bench.engines.dialects._sums import GREATEST_K, ReciprocalRanks
from fusion_bench.engines.dialects._translation import Draft, EngineFusion, check_blend, fit_blend
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import NoBlend, Replace
from fusion_bench.methods.fuse import (
    EngineForm,
    Fusion,
    Homogeneity,
    RankSum,
    ScoreTerms,
    WeightedFusion,
)
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.fuse.weighted_score import WeightedScore

#: The searches by what finds the documents, and their weights in CONV-03-05.
STRATEGIES: Mapping[str, float] = {"keyword": 0.35, "semantic": 0.35, "graph": 0.30}
Strategy = Literal["keyword", "semantic", "graph"]


class StrategyWeights(WeightedFusion):
    """Weights of the three strategies; any other source weighs 1.

    Attributes:
        weights: By source name or role.
        strategies: Source → the strategy that it stands for in the settings; None = in turn.
    """

    hidden_if_none: ClassVar[frozenset[str]] = frozenset({"strategies"})

    weights: dict[str, Weight] = Field(default_factory=lambda: dict(STRATEGIES))
    strategies: dict[str, Strategy] | None = None

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights by name or role; a strategy that no source has is no error."""
        present = {*sources, *(role for names in roles for role in names)}
        weights = {
            key: weight
            for key, weight in self.weights.items()
            if key in present or key not in STRATEGIES
        }
        fitting = self.model_copy(update={"weights": weights})
        return WeightedFusion.source_weights(fitting, sources, roles)


class RRFFusion(ReciprocalRanks, StrategyWeights):
    """``RRFFusion``: Σ_s w_s / (k + rank), ranks from 1, divided by 3/(k+1) and clamped to 1.

    The order is decided before the clamp.

    Attributes:
        k: Flattens the difference between neighboring ranks.
        normalize_scores: False = neither divided nor clamped.
    """

    formula: ClassVar[str] = "Σ w/(k + rank) · (k + 1)/3"
    source: ClassVar[str] = "CONV-07-05, 5.1"

    method: str = "RRFFusion"
    k: Annotated[int, Field(ge=1, le=GREATEST_K)] = 60
    normalize_scores: bool = True

    @property
    def constant(self) -> float:
        """``k``: ranks count from 1."""
        return self.k

    @property
    def divisor(self) -> float:
        """The score of a document that three lists of weight 1 rank first."""
        return 3 / (self.k + 1) if self.normalize_scores else 1.0

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """One term a source, over the divisor."""
        terms = super().score_terms(runs)
        divisor = np.full(len(runs.documents), self.divisor)
        return ScoreTerms(terms.labels, terms.sources, terms.terms, divisor)

    def display_scores(self, scores: FloatArray) -> FloatArray:
        """(N,): clamped to 1."""
        return np.minimum(scores, 1.0) if self.normalize_scores else scores

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the score of a document that every source ranks first, clamped."""
        return self.display_scores(super().max_possible(runs) / self.divisor)

    def engine_form(self, runs: AlignedRuns) -> RankSum:
        """The terms at every rank there is."""
        form = super().engine_form(runs)
        ceiling = 1.0 if self.normalize_scores else np.inf
        return RankSum(form.columns, form.tables, self.divisor, ceiling)

    def equivalent(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> Fusion:
        """Our ``rrf``, with ``three_lists`` or none."""
        weights = self.source_weights(sources, roles).tolist()
        return RRF(
            k=self.k,
            weights=dict(zip(sources, weights, strict=True)),
            normalize="three_lists" if self.normalize_scores else "none",
        )

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """K and the weights."""
        return (integer("k", 1, GREATEST_K, log=True), *super().space(sources))

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """1; None where the clamp bends the scale."""
        return None if self.normalize_scores else 1


class WeightedScoreFusion(EngineFusion, StrategyWeights):
    """``WeightedScoreFusion``: Σ w·x / Σ w over the lists that returned the document."""

    formula: ClassVar[str] = "Σ w·score / Σ w"
    source: ClassVar[str] = "CONV-07-05, 5.1"

    method: str = "WeightedScoreFusion"

    def equivalent(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> WeightedScore:
        """Our weighted mean of raw scores."""
        weights = self.source_weights(sources, roles).tolist()
        return WeightedScore(weights=dict(zip(sources, weights, strict=True)))

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the weighted mean."""
        return self.equivalent(runs.sources, runs.roles).fuse(runs)

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """A term a source, over the sum of the weights that count."""
        return self.equivalent(runs.sources, runs.roles).score_terms(runs)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): from the greatest score of each list."""
        return self.equivalent(runs.sources, runs.roles).max_possible(runs)

    def engine_form(self, runs: AlignedRuns) -> EngineForm | None:
        """The form of our weighted mean."""
        return self.equivalent(runs.sources, runs.roles).engine_form(runs)

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """0: a mean has its weights divided out."""
        return 0


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
