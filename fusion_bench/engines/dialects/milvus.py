"""Milvus: the RRF ranker and the weighted ranker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._configuration import Values
from fusion_bench.engines.dialects._dialect import EngineDialect, Form
from fusion_bench.engines.dialects._sums import CanonicalRRF, ScaledScoreSum
from fusion_bench.engines.dialects._translation import Draft, ReciprocalRankSum, name_weights
from fusion_bench.experiment.dialect import Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import Fusion, WeightedFusion
from fusion_bench.methods.normalize import Normalizer
from fusion_bench.methods.normalize.linear import RawScores

#: Most documents of a search.
MOST_DOCUMENTS = 16_384
Metric: TypeAlias = Literal["COSINE", "IP", "BM25", "L2"]
UnitWeight: TypeAlias = Annotated[float, Field(ge=0, le=1)]


class MilvusRRF(CanonicalRRF):
    """``rrf``: Σ_s 1 / (k + rank), ranks from 1; no weights.

    Attributes:
        k: Flattens the difference between neighboring ranks.
    """

    formula: ClassVar[str] = "Σ 1/(k + rank)"
    source: ClassVar[str] = "Milvus documentation, RRF ranker"

    method: str = "rrf"
    k: Annotated[float, Field(gt=0, le=1000)] = 60


class MilvusWeighted(ScaledScoreSum, WeightedFusion):
    """``weighted``: Σ_s w_s·x; missing documents add nothing.

    Attributes:
        weights: By source name or role, at most 1 each.
        norm_score: Whether each score is put on [0, 1] by its metric; else it stays as it is.
        metric: Of all lists, or by source name. ``L2`` takes scores that are negative distances.
    """

    formula: ClassVar[str] = "Σ w·score on [0, 1] by its metric"
    source: ClassVar[str] = "Milvus documentation, weighted ranker"

    our_scale = RawScores()

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

    def equivalent(self, weights: dict[str, float], /) -> Fusion | None:
        """Our weighted mean of raw scores with 0 for missing ones, where none is scaled."""
        metrics = {self.metric_of(name) for name in weights}
        if self.norm_score or ("L2" in metrics and metrics != {"L2"}):
            return None
        return super().equivalent(weights)

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


CODE = """\
from pymilvus import AnnSearchRequest, $ranker

# client = MilvusClient("URI")
requests = [
$[    AnnSearchRequest(data=["QUERY"], anns_field=$name!r, param={"metric_type": $metric!r}, \
limit=$window),
$]]
results = client.hybrid_search(
    collection_name="COLLECTION",
    reqs=requests,
    ranker=$ranker($(k=$constant$)$($factors!t, norm_score=$norm_score!r$)),
    limit=$top_k,
)
"""


@dialects.register
class Milvus(EngineDialect):
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

    forms = (Form({"search.py": CODE}),)
    notes = (
        'Replace each "QUERY" by the vector or text of its list, anns_field by its field, and '
        "metric_type by the field's metric.",
    )
    lists = (2, 1000)
    no_weights = "RRFRanker has none; they are left out"
    score_methods: ClassVar[Mapping[str, str]] = {"none": "weighted"}

    @classmethod
    def convert_ranks(cls, draft: Draft, ranks: ReciprocalRankSum) -> Mapping[str, Any]:
        """``rrf``, whose constant need not be whole."""
        constants = set(ranks.k.values())
        if len(constants) != 1 or min(constants) <= 0:
            return super().convert_ranks(draft, ranks)
        if not ranks.has_equal_weights:
            draft.lose(f"weights: {cls.no_weights}")
        return {"method": "rrf", "k": constants.pop()}

    @classmethod
    def convert_scores(cls, draft: Draft, scale: Normalizer) -> Mapping[str, Any]:
        """``weighted`` by raw scores, with weights up to 1."""
        fusion, most = super().convert_scores(draft, scale), max(draft.weights.values())
        weights = {name: weight / most for name, weight in draft.weights.items()}
        return {**fusion, "norm_score": False, "weights": name_weights(weights)}

    @classmethod
    def finish(cls, draft: Draft, fusion: Mapping[str, Any]) -> Translation:
        """Of the longest list that is returned."""
        windows = draft.choose_windows(**cls.windows)
        if (windows["top_k"] or 0) > MOST_DOCUMENTS:
            draft.note(f"top_k: at most {MOST_DOCUMENTS} documents are returned")
            windows["top_k"] = MOST_DOCUMENTS
        return draft.finish(fusion, **windows)

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """With the ranker and the metrics."""
        values, fusion = super().list_values(system, roles), system.fusion
        if not isinstance(fusion, MilvusWeighted):
            values |= {"ranker": "RRFRanker", "constant": values["k"], "metric": "COSINE"}
            return values
        for each in values["sources"]:
            each["metric"] = fusion.metric_of(each["name"])
        factors = ", ".join(map(repr, values["weights"]))
        return {**values, "ranker": "WeightedRanker", "factors": factors}

    @classmethod
    def make_system(cls, values: Values) -> dict[str, Any]:
        """By the ranker."""
        system = super().make_system({**values, "method": "rrf", "k": values.get("constant")})
        if values["ranker"] == "RRFRanker":
            return system
        weights = [float(weight) for weight in values["factors"].split(", ")]
        system["fusion"] = {
            "method": "weighted",
            "weights": name_weights(dict(zip(system["runs"], weights, strict=True)))
            if set(weights) == {1.0}
            else dict(zip(system["runs"], weights, strict=True)),
            "norm_score": values["norm_score"],
            "metric": {each["name"]: each["metric"] for each in values["sources"]},
        }
        return system
