"""Milvus: the RRF ranker and the weighted ranker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    find_call,
    find_calls,
    most_results,
    parse_python,
    refuse_unreadable,
    weights_by_source,
    windows_by_source,
)
from fusion_bench.engines.dialects._sums import ScaledScoreSum
from fusion_bench.engines.dialects._translation import CanonicalFusion, Draft, name_weights
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import Fusion, WeightedFusion
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.fuse.weighted_score import WeightedScore
from fusion_bench.methods.normalize.linear import RawScores

FILE = "search.py"
#: Most documents of a search.
MOST_DOCUMENTS = 16_384
Metric: TypeAlias = Literal["COSINE", "IP", "BM25", "L2"]
UnitWeight: TypeAlias = Annotated[float, Field(ge=0, le=1)]


class MilvusRRF(CanonicalFusion):
    """``rrf``: Σ_s 1 / (k + rank), ranks from 1; no weights.

    Attributes:
        k: Flattens the difference between neighboring ranks.
    """

    formula: ClassVar[str] = "Σ 1/(k + rank)"
    source: ClassVar[str] = "Milvus documentation, RRF ranker"

    method: str = "rrf"
    k: Annotated[float, Field(gt=0, le=1000)] = 60

    @property
    def canonical(self) -> RRF:
        """Our ``rrf`` without weights."""
        return RRF(k=self.k)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no weights
        """k, evenly by its logarithm."""
        return (real("k", 1.0, 1000.0, log=True),)


class MilvusWeighted(ScaledScoreSum, WeightedFusion):
    """``weighted``: Σ_s w_s·x; missing documents add nothing.

    Attributes:
        weights: By source name or role, at most 1 each.
        norm_score: Whether each score is put on [0, 1] by its metric; else it stays as it is.
        metric: Of all lists, or by source name. ``L2`` takes scores that are negative distances.
    """

    formula: ClassVar[str] = "Σ w·score on [0, 1] by its metric"
    source: ClassVar[str] = "Milvus documentation, weighted ranker"

    method: str = "weighted"
    weights: dict[str, UnitWeight] = Field(default_factory=dict)
    norm_score: bool = True
    metric: Metric | dict[str, Metric] = "COSINE"

    def metric_of(self, source: str) -> Metric:
        """The metric of a source; ``COSINE`` where a mapping does not name it."""
        if isinstance(self.metric, dict):
            return self.metric.get(source, "COSINE")
        return self.metric

    def scaled_scores(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): each list by its metric.

        With metrics of both directions a distance is scaled even without ``norm_score``.
        """
        metrics = [self.metric_of(name) for name in runs.sources]
        is_mixed = "L2" in metrics and set(metrics) != {"L2"}
        return np.array(
            [
                _scale(scores, metric)
                if self.norm_score or (is_mixed and metric == "L2")
                else scores
                for scores, metric in zip(runs.scores, metrics, strict=True)
            ]
        )

    def equivalent(
        self,
        sources: Sequence[str],
        roles: Sequence[frozenset[str]],  # noqa: ARG002 - part of the contract
    ) -> Fusion | None:
        """Our weighted mean of raw scores with 0 for missing ones, where none is scaled."""
        metrics = {self.metric_of(name) for name in sources}
        if self.norm_score or ("L2" in metrics and metrics != {"L2"}):
            return None
        return WeightedScore(normalize=RawScores(), missing="zero", weights=self.weights)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The weights, up to 1."""
        if len(sources) == 1:
            return ()
        return tuple(real(f"weights.{name}", 0.0, 1.0) for name in sources)


def _scale(scores: FloatArray, metric: Metric) -> FloatArray:
    """(N,): scores of a metric on [0, 1]; NaN stays NaN."""
    if metric == "COSINE":
        return (1 + scores) / 2
    arc = np.arctan(scores) / np.pi
    if metric == "IP":
        return 0.5 + arc
    return 2 * arc if metric == "BM25" else 1 + 2 * arc  # of a negative distance


@dialects.register
class Milvus(Dialect):
    """Milvus 2.6."""

    name = "milvus"
    title = "Milvus"
    version = "2.6"
    source = "https://milvus.io/docs/reranking.md"
    methods = (MilvusRRF, MilvusWeighted)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 10, "top_k": 10}  # limit
    ignores = (
        "RRFRanker has no weights.",
        "WeightedRanker scales by the metric, not by the list: there is no min-max.",
        "A bonus for top ranks cannot be said.",
    )

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """``rrf`` for reciprocal ranks, ``weighted`` for sums of raw scores."""
        draft = Draft(cls, system, roles)
        if len(draft.sources) < 2:
            return draft.refuse("runs: two or more lists are fused")
        fusion: dict[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
        elif (ranks := draft.find_reciprocal_ranks()) is not None:
            if not ranks.has_equal_weights:
                draft.lose("weights: RRFRanker has none; they are left out")
            constants = set(ranks.k.values())
            if len(constants) == 1 and min(constants) > 0:
                fusion = {"k": constants.pop()}
            else:
                fusion = {"k": draft.choose_rank_constant(ranks, 1)}
        elif (mean := draft.find_score_sum()) is not None:
            if mean.normalize.method != "none":
                return draft.refuse(f"normalize: {cls.title} has no {mean.normalize.method!r}")
            most = max(draft.weights.values())
            weights = {name: weight / most for name, weight in draft.weights.items()}
            fusion = {"method": "weighted", "norm_score": False, "weights": name_weights(weights)}
        else:
            return draft.refuse_fusion()
        windows = draft.choose_windows(by_source=True)
        if (windows["top_k"] or 0) > MOST_DOCUMENTS:
            draft.note(f"top_k: at most {MOST_DOCUMENTS} documents are returned")
            windows["top_k"] = MOST_DOCUMENTS
        return draft.finish(fusion, **windows)

    @classmethod
    def write(cls, system: System) -> Configuration:
        """Python for pymilvus."""
        check_writable(cls, system)
        weights, windows, fusion = (
            weights_by_source(system),
            windows_by_source(system),
            system.fusion,
        )
        requests, ranker = [], "RRFRanker"
        arguments = f"k={fusion.model_dump().get('k')!r}"
        if isinstance(fusion, MilvusWeighted):
            ranker = "WeightedRanker"
            values = ", ".join(repr(weight) for weight in weights.values())
            arguments = f"{values}, norm_score={fusion.norm_score!r}"
        for name in system.runs:
            metric = fusion.metric_of(name) if isinstance(fusion, MilvusWeighted) else "COSINE"
            requests.append(
                f'    AnnSearchRequest(data=["QUERY"], anns_field={name!r}, '
                f'param={{"metric_type": {metric!r}}}, limit={windows[name]!r}),\n'
            )
        code = f"""from pymilvus import AnnSearchRequest, {ranker}

# client = MilvusClient("URI")
requests = [
{"".join(requests)}]
results = client.hybrid_search(
    collection_name="COLLECTION",
    reqs=requests,
    ranker={ranker}({arguments}),
    limit={most_results(system)},
)
"""
        return Configuration(
            {FILE: code},
            (
                'Replace each "QUERY" by the vector or text of its list, anns_field by its field, '
                "and metric_type by the field's metric.",
            ),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from Python for pymilvus.

        Raises:
            ConfigError: It is none.
        """
        tree = parse_python(files, FILE)
        with refuse_unreadable(FILE, cls.title):
            requests = [call for _, call in find_calls(tree, "AnnSearchRequest")]
            ranker, call = find_call(tree, "RRFRanker", "WeightedRanker")
            names = [request["anns_field"] for request in requests]
            fusion: dict[str, Any] = {"method": "rrf", "k": call.get("k", call.get("0", 60))}
            if ranker == "WeightedRanker":
                weights = [call[str(i)] for i in range(len(names))]
                metrics = {
                    name: r["param"]["metric_type"] for name, r in zip(names, requests, strict=True)
                }
                fusion = {
                    "method": "weighted",
                    "weights": name_weights(dict(zip(names, weights, strict=True)))
                    if set(weights) == {1.0}
                    else dict(zip(names, weights, strict=True)),
                    "norm_score": call.get("norm_score", True),
                    "metric": metrics,
                }
            depth = {request["anns_field"]: request["limit"] for request in requests}
            _, search = find_call(tree, "hybrid_search")
        return {
            "runs": names,
            "dialect": cls.name,
            "fusion": fusion,
            "depth": depth,
            "top_k": search.get("limit", 10),
        }
