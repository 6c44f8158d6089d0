"""OpenSearch: the normalization processor and the score ranker of hybrid queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal

import numpy as np
from pydantic import Field, model_validator

from fusion_bench.config.parameters import Parameter, choice, integer
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    common_window,
    read_json,
    refuse_unreadable,
    weights_by_source,
    write_json,
)
from fusion_bench.engines.dialects._search_requests import (
    PLACEHOLDERS,
    QUERY,
    find_reranker,
    fit_replace,
    is_vector_search,
    read_rerank_steps,
    write_query,
    write_rerank_steps,
)
from fusion_bench.engines.dialects._sums import RankTermSum
from fusion_bench.engines.dialects._translation import Draft, EngineFusion, name_weights
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import Replace
from fusion_bench.methods.fuse import Fusion, Homogeneity, ScoreTerms, WeightedFusion
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.normalize import Normalizer, ScoreLists

#: What a scaled score of 0, or below the average, becomes.
FLOOR = 0.001


class MinMax(Normalizer):
    """(x − min) / (max − min), 0.001 in place of 0; 1 for equal scores, 0.001 if they are 0."""

    method: str = "opensearch min_max"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): in [0.001, 1]."""
        low, high = lists.list_minimum(), lists.list_maximum()
        scaled = self.divide_or_constant(lists.scores - low, high - low)
        return np.where((scaled == 0) | ((low == 0) & (high == 0)), FLOOR, scaled)


class L2(Normalizer):
    """x / ‖x‖₂; 0 for a list of zeros."""

    method: str = "opensearch l2"
    constant: Annotated[float, Field(ge=0, le=1, multiple_of=0.5)] = 0

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): squares adding up to 1 over the list."""
        return self.divide_or_constant(lists.scores, np.sqrt(lists.list_sum(lists.scores**2)))


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
SCALES: Final[Mapping[str, Normalizer]] = {"min_max": MinMax(), "l2": L2(), "z_score": ZScore()}


#: How far the sum of the weights may be from 1.
TOLERANCE = 0.01


class OpenSearchFusion(WeightedFusion):
    """Weights as OpenSearch takes them: each in [0, 1], 1 in all; none = 1 each."""

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

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """None: weights of another sum are refused."""
        return None


class NormalizationProcessor(EngineFusion, OpenSearchFusion):
    """``normalization-processor``: a mean of normalized scores.

    Attributes:
        normalization: How each list is scaled.
        combination: The mean; ``geometric_mean`` and ``harmonic_mean`` leave out what is 0,
            ``arithmetic_mean`` only what is negative.
    """

    formula: ClassVar[str] = "mean of normalized scores"
    source: ClassVar[str] = "OpenSearch documentation, normalization processor"

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


class ScoreRankerProcessor(OpenSearchFusion, RankTermSum):
    """``score-ranker-processor``: Σ_s w_s / (rank_constant + rank), ranks from 1.

    Each quotient is rounded half up to ten decimals before it is weighed.

    Attributes:
        rank_constant: Flattens the difference between neighboring ranks.
    """

    formula: ClassVar[str] = "Σ w·round(1/(rank_constant + rank), 10)"
    source: ClassVar[str] = "OpenSearch documentation, score ranker processor"

    method: str = "score-ranker-processor"
    rank_constant: Annotated[int, Field(ge=1, le=10_000)] = 60

    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:
        """(n,): the weighted quotient."""
        below = ranks + self.rank_constant
        return weight * (((2 * 10**10 + below) // (2 * below)) / 10**10)

    def equivalent(
        self,
        sources: Sequence[str],  # noqa: ARG002 - part of the contract
        roles: Sequence[frozenset[str]],  # noqa: ARG002 - part of the contract
    ) -> Fusion | None:
        """Our ``rrf``, where it takes the constant."""
        if self.rank_constant > 1000:
            return None
        return RRF(k=self.rank_constant, weights=self.weights)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no weights
        """The rank constant; weights must add up to 1, so none is tuned alone."""
        return (integer("rank_constant", 1, 1000, log=True),)


#: Most queries of a hybrid query.
MOST_SOURCES = 5
PIPELINE, REQUEST = "search-pipeline.json", "search.json"


@dialects.register
class OpenSearch(Dialect):
    """OpenSearch 3.5."""

    name = "opensearch"
    title = "OpenSearch"
    version = "3.5"
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
    blends = (Replace,)

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """The score ranker for reciprocal ranks, the normalization processor for scores."""
        draft = Draft(cls, system, roles)
        if not 2 <= len(draft.sources) <= MOST_SOURCES:
            return draft.refuse(f"runs: a hybrid query has 2 to {MOST_SOURCES} queries")
        fusion: Mapping[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
        elif (ranks := draft.find_reciprocal_ranks()) is not None:
            constant = draft.choose_rank_constant(ranks, 1)
            fusion = {"method": "score-ranker-processor", "rank_constant": constant}
        elif (mean := draft.find_score_sum()) is not None:
            name = mean.normalize.method
            if name not in SCALES:
                return draft.refuse(f"normalize: {cls.title} has no {name!r}")
            draft.lose(
                "normalize: negative scores, and a list of zeros, count otherwise"
                if name == "l2"
                else f"normalize: {name} gives {FLOOR} at least, more than a missing document has"
            )
            fusion = {"method": "normalization-processor", "normalization": name}
        else:
            return draft.refuse_fusion()
        if not draft.is_of_dialect:
            total = sum(draft.weights.values())
            shares = {name: weight / total for name, weight in draft.weights.items()}
            fusion = {**fusion, "weights": name_weights(shares)}
        return draft.finish(fusion, **fit_replace(draft, draft.choose_windows(cut_to_window=True)))

    @classmethod
    def write(cls, system: System) -> Configuration:
        """A search pipeline and a hybrid query, with a match query for every list."""
        return cls.write_by_role(system, {})

    @classmethod
    def write_by_role(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Configuration:
        """The same with a ``knn`` query for each list of role ``semantic``."""
        check_writable(cls, system)
        reranker = find_reranker(cls, system)
        window = common_window(system)
        queries = [
            write_query(name, window, is_vector=is_vector_search(name, roles))
            for name in system.runs
        ]
        size = min(system.top_k or window, window)
        pipeline: dict[str, Any] = {"phase_results_processors": [_write_processor(system)]}
        request: dict[str, Any] = {
            "query": {"hybrid": {"pagination_depth": window, "queries": queries}},
            "size": size if reranker is None else reranker.depth,
        }
        if reranker is not None:
            pipeline["response_processors"] = write_rerank_steps(reranker, size)
            request["ext"] = {"rerank": {"query_context": {"query_text": QUERY}}}
        return Configuration(
            {
                PIPELINE: write_json(pipeline),
                REQUEST: write_json(request),
            },
            (
                f"Send {PIPELINE} to PUT /_search/pipeline/fused.",
                f"Send {REQUEST} to POST /INDEX/_search?search_pipeline=fused.",
                "Replace each query by that of its list; keep the order and the _name.",
                PLACEHOLDERS,
                *((f"model_id: the model of {reranker.reranker}.",) if reranker else ()),
                "Weights of the score ranker need 3.1; ranks over all shards need 3.5.",
            ),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from a search pipeline and a hybrid query.

        Raises:
            ConfigError: They are none.
        """
        pipeline, request = read_json(files, PIPELINE), read_json(files, REQUEST)
        with refuse_unreadable(PIPELINE, cls.title):
            ((method, processor),) = pipeline["phase_results_processors"][0].items()
            hybrid = request["query"]["hybrid"]
            names = [_query_name(query) for query in hybrid["queries"]]
            combination = processor["combination"]
            fusion = {"method": method}
            if method == "normalization-processor":
                fusion["normalization"] = processor["normalization"]["technique"]
                fusion["combination"] = combination["technique"]
            else:
                fusion["rank_constant"] = combination.get("rank_constant", 60)
            weights = combination.get("parameters", {}).get("weights")
            if weights is not None:
                fusion["weights"] = dict(zip(names, weights, strict=True))
            size = request.get("size", 10)
            depth = hybrid.get("pagination_depth", size)
            system = {"runs": names, "dialect": cls.name, "fusion": fusion}
            if "response_processors" in pipeline:
                system["blend"], size = read_rerank_steps(pipeline["response_processors"], size)
        return {**system, "depth": depth, "top_k": size}


def _query_name(query: Mapping[str, Any]) -> str:
    """The ``_name`` somewhere in a query."""
    for key, value in query.items():
        if key == "_name":
            return str(value)
        if isinstance(value, Mapping):
            try:
                return _query_name(value)
            except KeyError:
                continue
    raise KeyError("_name")


def _write_processor(system: System) -> dict[str, Any]:
    """The processor that fuses, by its name."""
    fusion = system.fusion
    processor: dict[str, Any]
    if isinstance(fusion, NormalizationProcessor):
        combination: dict[str, Any] = {"technique": fusion.combination}
        processor = {"normalization": {"technique": fusion.normalization}}
    else:
        constant = fusion.model_dump()["rank_constant"]
        combination, processor = {"technique": "rrf", "rank_constant": constant}, {}
    if isinstance(fusion, WeightedFusion) and fusion.weights:
        combination["parameters"] = {"weights": [*weights_by_source(system).values()]}
    processor["combination"] = combination
    return {fusion.method: processor}
