"""CONV-07-05: fusion of keyword, semantic and graph search, then a reranker that replaces it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fusion_bench.config.models import Weight
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._dialect import EngineDialect, Form, Maybe, Slot, Values, share
from fusion_bench.engines.dialects._sums import GREATEST_K, TOLERANCE, ReciprocalRanks
from fusion_bench.engines.dialects._translation import (
    CanonicalFusion,
    Draft,
    check_blend,
    fit_blend,
)
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import NoBlend, Replace
from fusion_bench.methods.fuse import Fusion, Homogeneity, RankSum, ScoreTerms, WeightedFusion
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

    hidden_if_none = frozenset({"strategies"})
    ties = "first_seen"  # a stable sort

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

    formula = "Σ w/(k + rank) · (k + 1)/3"
    source = "CONV-07-05, 5.1"

    method: str = "RRFFusion"
    k: Annotated[int, Field(ge=1, le=GREATEST_K)] = 60
    normalize_scores: bool = True

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

    def equivalent(self, weights: dict[str, float], /) -> Fusion:
        """Our ``rrf``, with ``three_lists`` or none."""
        normalize = "three_lists" if self.normalize_scores else "none"
        return RRF.model_validate({"k": self.k, "weights": weights, "normalize": normalize})

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """1; None where the clamp bends the scale."""
        return None if self.normalize_scores else 1


class StrategyMean(StrategyWeights, WeightedScore):
    """Our weighted mean of raw scores with such weights."""

    method: str = "weighted_score"


class WeightedScoreFusion(CanonicalFusion, StrategyWeights):
    """``WeightedScoreFusion``: Σ w·x / Σ w over the lists that returned the document."""

    formula = "Σ w·score / Σ w"
    source = "CONV-07-05, 5.1"

    method: str = "WeightedScoreFusion"

    @property
    def canonical(self) -> StrategyMean:
        """Our weighted mean."""
        return StrategyMean(weights=self.weights)

    def equivalent(self, weights: dict[str, float], /) -> WeightedScore:
        """Our weighted mean of raw scores."""
        return WeightedScore(weights=weights)


#: What is written of the blend, beside its reranker.
WRITABLE = frozenset({"depth", "always_rerank", "skip_limit"})
RERANK = {
    "enabled": Slot("is_reranked"),
    "model": Maybe("reranker"),
    "topK": Maybe("rerank_depth"),
    "alwaysRerank": Maybe("always_rerank"),
}
SETTINGS = {
    "fusion": Slot("method"),
    "strategies": Slot("slots"),
    "weights": Slot("slot_weights"),
    "rrf": Maybe("k", {"k": Slot("k"), "normalizeScores": Slot("normalize_scores")}),
    "rerank": RERANK,
    "options": {"limit": Slot("top_k")},
}


@dialects.register
class Conv0705(EngineDialect):
    """CONV-07-05, with the types and defaults of CONV-03-05 1.0.0."""

    name = "conv-07-05"
    title = "CONV-07-05"
    version = "1.0.0"
    checked = "2026-11-29"
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

    forms = (Form({"search.json": SETTINGS}),)
    notes = (
        "new RRFFusion(k).fuse(resultSets, weights), then reranker.rerank(query, fused, "
        "limit); weights and k as in the file.",
        "The keys are those of SearchWeights, RRFConfig, RerankConfig and SearchOptions in "
        "CONV-03-05, which allows a limit and a topK of 1 to 100.",
    )
    lists = (1, len(STRATEGIES))
    lists_rule = f"at most {len(STRATEGIES)} lists are fused"

    @classmethod
    def convert(cls, draft: Draft) -> Mapping[str, Any]:
        """``RRFFusion`` for reciprocal ranks, ``WeightedScoreFusion`` for means of raw scores."""
        ours = draft.fusion
        if not isinstance(ours, WeightedScore):
            fusion = super().convert(draft)
            return {**fusion, "weights": _divide_by_sum(draft.weights)}
        if ours.normalize.method != "none":
            draft.refuse_normalizer(ours.normalize.method)
        if ours.missing != "skip":
            draft.lose(f"missing: {ours.missing!r} becomes 'skip'")
        return {"method": "WeightedScoreFusion", "weights": _divide_by_sum(draft.weights)}

    @classmethod
    def finish(cls, draft: Draft, fusion: Mapping[str, Any]) -> Translation:
        """Finish the translation, with the strategies and the limit of the reranker."""
        windows = draft.choose_windows(**cls.windows)
        fit_blend(draft, WRITABLE)
        blend, limit = draft.blend, windows["top_k"]
        if isinstance(blend, Replace) and blend.skip_limit != limit:
            if not blend.always_rerank:
                draft.lose(f"blend.skip_limit: {limit} instead of {blend.skip_limit}, as top_k")
            draft.blend = blend.model_copy(update={"skip_limit": limit})
        strategies = _assign_strategies(draft.sources, draft.roles)
        return draft.finish({**fusion, "strategies": strategies}, **windows)

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Values of a system by strategy, with the blend."""
        check_blend(cls, system, WRITABLE)
        values = super().list_values(system, roles)
        given = values.get("strategies") or {}
        known = {name: frozenset({strategy}) for name, strategy in given.items()}
        slots = _assign_strategies(system.runs, known)
        if len(slots) < len(system.runs):
            raise ConfigError(f"system {system.name!r}: runs: at most {len(STRATEGIES)} lists")
        weights = {slots[each["name"]]: each["weight"] for each in values["sources"]}
        rest = max(0.0, 1 - sum(values["weights"]))
        free = [slot for slot in STRATEGIES if slot not in weights]
        weights |= {slot: rest * (slot == free[0]) for slot in free}
        values["slot_weights"] = weights
        values["slots"] = {
            slots[name]: {"source": name, "limit": values["windows"][name]} for name in system.runs
        }
        blend = system.blend
        values["is_reranked"] = not isinstance(blend, NoBlend)
        if isinstance(blend, Replace):
            depth, always = blend.depth, blend.always_rerank
            values |= {"reranker": blend.reranker, "rerank_depth": depth, "always_rerank": always}
        return values


def _assign_strategies(
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


def _divide_by_sum(weights: Mapping[str, float]) -> dict[str, float]:
    """Shares of 1; weights whose sum is 1 but for rounding stay as they are."""
    is_one = abs(sum(weights.values()) - 1) <= TOLERANCE
    return dict(weights) if is_one else share(weights)
