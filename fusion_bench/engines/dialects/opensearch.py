"""OpenSearch: the normalization processor and the score ranker of hybrid queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal

import numpy as np
from pydantic import Field, model_validator

from fusion_bench.config.parameters import Parameter, choice
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.engines.dialects._dialect import Each, Form, Maybe, Slot, Values, share
from fusion_bench.engines.dialects._sums import RankConstant, RankTermSum
from fusion_bench.engines.dialects._translation import Draft, EngineFusion, name_weights
from fusion_bench.engines.dialects.elasticsearch import (
    QUERY,
    TEXT_FIELD,
    VECTOR,
    VECTOR_FIELD,
    SearchDialect,
)
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import Fusion, Homogeneity, ScoreTerms, WeightedFusion
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.normalize import Normalizer, ScoreLists
from fusion_bench.methods.normalize.linear import L2, MinMax

#: What a scaled score of 0, or below the average, becomes.
FLOOR = 0.001


class FlooredMinMax(MinMax):
    """(x − min) / (max − min), 0.001 in place of 0; 1 for equal scores, 0.001 if they are 0."""

    method: str = "opensearch min_max"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): in [0.001, 1]."""
        low, high = lists.list_minimum(), lists.list_maximum()
        scaled = super().scale_lists(lists)
        return np.where((scaled == 0) | ((low == 0) & (high == 0)), FLOOR, scaled)


class OpenSearchL2(L2):
    """x / ‖x‖₂; 0 for a list of zeros."""

    method: str = "opensearch l2"


class ZScore(Normalizer):
    """(x − mean) / sample sd, 0.001 where that is not positive; the greatest score at the mean."""

    method: str = "opensearch z_score"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): above 0, but for lists of equal scores, which stay as they are."""
        size, high = lists.list_length(), lists.list_maximum()
        mean = lists.list_sum(lists.scores) / size
        variance = lists.list_sum((lists.scores - mean) ** 2) / np.maximum(size - 1, 1)
        is_spread = high > lists.list_minimum()
        scaled = (lists.scores - mean) / np.sqrt(np.where(is_spread, variance, 1.0))
        at_mean = (lists.scores == mean) | ~is_spread
        return np.where(at_mean, high, np.where(scaled <= 0, FLOOR, scaled))


#: By name.
SCALES: Final[Mapping[str, Normalizer]] = {
    "min_max": FlooredMinMax(),
    "l2": OpenSearchL2(constant=0),
    "z_score": ZScore(),
}


#: How far the sum of the weights may be from 1.
TOLERANCE = 0.01


class OpenSearchFusion(WeightedFusion):
    """Weights as OpenSearch takes them: each in [0, 1], 1 in all; none = 1 each."""

    homogeneity: ClassVar[Homogeneity] = None  # weights of another sum are refused

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights by name or role.

        Raises:
            ConfigError: They do not fit the sources, or do not add up to 1.
        """
        weights = super().source_weights(sources, roles)
        total = float(weights.sum())
        if self.weights and (abs(total - 1) > TOLERANCE or weights.max() > 1):
            raise ConfigError(
                f"weights: OpenSearch needs a weight in [0, 1] for every source and a sum of 1 "
                f"± {TOLERANCE}, given {total:g} over {', '.join(sources)}"
            )
        return weights


class NormalizationProcessor(EngineFusion, OpenSearchFusion):
    """``normalization-processor``: a mean of normalized scores.

    Attributes:
        normalization: How each list is scaled.
        combination: The mean; ``geometric_mean`` and ``harmonic_mean`` leave out what is 0,
            ``arithmetic_mean`` only what is negative.
    """

    formula = "mean of normalized scores"
    source = "OpenSearch documentation, normalization processor"

    method: str = "normalization-processor"
    normalization: Literal["min_max", "l2", "z_score"] = "min_max"
    combination: Literal["arithmetic_mean", "geometric_mean", "harmonic_mean"] = "arithmetic_mean"

    @model_validator(mode="after")
    def _check_combination(self) -> NormalizationProcessor:
        if self.normalization == "z_score" and self.combination != "arithmetic_mean":
            raise ValueError("normalization: z_score needs combination: arithmetic_mean")
        return self

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the mean."""
        if self.combination == "arithmetic_mean":
            return self.score_terms(runs).scores
        weights = self.source_weights(runs.sources, runs.roles)[:, None]
        scores = self._filled_scores(runs)
        present = scores > 0
        safe = np.where(present, scores, 1.0)
        share = sum_terms(np.where(present, weights, 0.0))
        divisor = np.where(share > 0, share, 1.0)
        if self.combination == "geometric_mean":
            logarithms = sum_terms(np.where(present, weights * np.log(safe), 0.0))
            mean = np.exp(logarithms / divisor)
        else:
            inverses = sum_terms(np.where(present, weights / safe, 0.0))
            mean = share / np.where(share > 0, inverses, 1.0)
        return np.where(share > 0, mean, 0.0)

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """One term a source of an arithmetic mean; otherwise the score itself."""
        if self.combination != "arithmetic_mean":
            return super().score_terms(runs)
        weights = self.source_weights(runs.sources, runs.roles)[:, None]
        scores = self._filled_scores(runs)
        counts = scores >= 0
        share = sum_terms(np.where(counts, weights, 0.0))
        return ScoreTerms(
            runs.sources,
            tuple(range(len(runs.sources))),
            np.where(counts, weights * scores, 0.0),
            np.where(share > 0, share, 1.0),
        )

    def _filled_scores(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the normalized scores; 0 where a source did not return the document."""
        return np.nan_to_num(SCALES[self.normalization].normalize_scores(runs), nan=0.0)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no weights
        """The normalization; weights must add up to 1, so none is tuned alone."""
        names = [*SCALES] if self.combination == "arithmetic_mean" else ["min_max", "l2"]
        return (choice("normalization", *names),)


class ScoreRankerProcessor(RankConstant, OpenSearchFusion, RankTermSum):
    """``score-ranker-processor``: Σ_s w_s / (rank_constant + rank), ranks from 1.

    Each quotient is rounded half up to ten decimals before it is weighed.

    Attributes:
        rank_constant: Flattens the difference between neighboring ranks.
    """

    formula = "Σ w·round(1/(rank_constant + rank), 10)"
    source = "OpenSearch documentation, score ranker processor"

    constant_field = "rank_constant"

    method: str = "score-ranker-processor"
    rank_constant: Annotated[int, Field(ge=1, le=10_000)] = 60

    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:
        """(n,): the weighted quotient."""
        below = ranks + self.rank_constant
        return weight * (((2 * 10**10 + below) // (2 * below)) / 10**10)

    def equivalent(self, weights: dict[str, float], /) -> Fusion | None:
        """Our ``rrf``, where it takes the constant."""
        return RRF(k=self.rank_constant, weights=weights) if self.rank_constant <= 1000 else None

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The rank constant; weights must add up to 1, so none is tuned alone."""
        return super().space(sources)[:1]


#: Most queries of a hybrid query.
MOST_SOURCES = 5
PIPELINE, REQUEST = "search-pipeline.json", "search.json"
PROCESSOR = {
    Slot("method"): {
        "normalization": Maybe("normalization", {"technique": Slot("normalization")}),
        "combination": {
            "technique": Slot("technique"),
            "rank_constant": Maybe("rank_constant"),
            "parameters": Maybe("weights", {"weights": Slot("weights")}),
        },
    }
}
MODEL = {"model_id": Slot("reranker")}
RERANK = {"rerank": {"ml_opensearch": MODEL, "context": {"document_fields": [TEXT_FIELD]}}}
STEPS = [
    Maybe("reranker", RERANK),
    Maybe("parent", {"collapse": {"field": Slot("parent")}}),
    {"truncate_hits": {"target_size": Slot("size")}},
]
HYBRID = {"pagination_depth": Slot("window"), "queries": Each(Slot("search"))}


@dialects.register
class OpenSearch(SearchDialect):
    """OpenSearch 3.5."""

    name = "opensearch"
    title = "OpenSearch"
    version = "3.5"
    checked = "2026-11-23"
    source = "https://docs.opensearch.org/latest/vector-search/ai-search/hybrid-search/index/"
    methods = (NormalizationProcessor, ScoreRankerProcessor)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 10, "top_k": 10}  # size
    ignores = (
        "Weights whose sum is not 1 are refused.",
        "More than five lists are refused.",
        "A bonus for top ranks, and a depth of its own for each list, cannot be said.",
        "lower_bounds and upper_bounds of min_max are not modeled here.",
        "The rerank processor replaces the fused score: of the blends, replace alone can be said.",
    )

    forms = (
        Form(
            {
                PIPELINE: {
                    "phase_results_processors": [PROCESSOR],
                    "response_processors": Maybe("has_steps", STEPS),
                },
                REQUEST: {
                    "query": {"hybrid": HYBRID},
                    "size": Slot("hits"),
                    "min_score": Maybe("min_score"),
                    "ext": Maybe("reranker", {"rerank": {"query_context": {"query_text": QUERY}}}),
                },
            }
        ),
    )
    notes = (
        f"Send {PIPELINE} to PUT /_search/pipeline/fused.",
        f"Send {REQUEST} to POST /INDEX/_search?search_pipeline=fused.",
        "Replace each query by that of its list; keep the order and the _name.",
    )
    reranker_note = "model_id: the model of {}."
    last_notes: ClassVar[Mapping[str, str]] = {
        "score-ranker-processor": (
            "Weights of the score ranker need 3.1; ranks over all shards need 3.5."
        )
    }
    minimum_score = "min_score (of the fused score since version 3.5)"
    lists = (2, MOST_SOURCES)
    lists_rule = f"a hybrid query has 2 to {MOST_SOURCES} queries"
    score_methods = dict.fromkeys(SCALES, "normalization-processor")
    most_chunks = 1  # its processor drops the others
    collapse_places = ("reranked",)

    @classmethod
    def convert(cls, draft: Draft) -> Mapping[str, Any]:
        """Convert the fusion, with weights that add up to 1."""
        return {**super().convert(draft), "weights": name_weights(share(draft.weights))}

    @classmethod
    def convert_scores(cls, draft: Draft, scale: Normalizer) -> Mapping[str, Any]:
        """The normalization processor, whose scales have a floor."""
        fusion, name = super().convert_scores(draft, scale), scale.method
        draft.lose(
            "normalize: negative scores, and a list of zeros, count otherwise"
            if name == "l2"
            else f"normalize: {name} gives {FLOOR} at least, more than a missing document has"
        )
        return {**fusion, "normalization": name}

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Values of a system, with the processor's technique and the reranker's hits."""
        values, fusion = super().list_values(system, roles), system.fusion
        if isinstance(fusion, WeightedFusion) and not fusion.weights:
            values["weights"] = []
        has_steps = "reranker" in values or "parent" in values or None
        hits = values["window"] if has_steps else values["size"]
        hits = values.get("rerank_depth", hits)
        technique = values.get("combination", "rrf")
        return {**values, "technique": technique, "hits": hits, "has_steps": has_steps}

    @classmethod
    def write_search(cls, name: str, window: int, *, is_vector: bool) -> dict[str, Any]:
        """The query of a list."""
        if is_vector:
            return {"knn": {VECTOR_FIELD: {"vector": VECTOR, "k": window, "_name": name}}}
        return {"match": {TEXT_FIELD: {"query": QUERY, "_name": name}}}
