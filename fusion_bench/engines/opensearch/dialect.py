"""OpenSearch: the normalization processor and the score ranker of hybrid queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fusion_bench.blend.replace import Replace
from fusion_bench.engines._dialects.configuration import (
    check_writable,
    common_window,
    read_json,
    refuse_unreadable,
    weights_by_source,
    write_json,
)
from fusion_bench.engines._dialects.search_requests import (
    PLACEHOLDERS,
    QUERY,
    find_reranker,
    fit_replace,
    is_vector_search,
    read_rerank_steps,
    write_query,
    write_rerank_steps,
)
from fusion_bench.engines._dialects.translation import Draft, name_weights
from fusion_bench.engines.opensearch._fusions import NormalizationProcessor, ScoreRankerProcessor
from fusion_bench.engines.opensearch._scales import FLOOR, SCALES
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.fuse import WeightedFusion

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
