"""Vector databases: Chroma, Milvus, Qdrant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.engines.dialects._dialect import (
    Each,
    EngineDialect,
    Form,
    Maybe,
    Slot,
    Values,
    fill_text,
    read_template,
)
from fusion_bench.engines.dialects._sums import (
    GREATEST_K,
    CanonicalRRF,
    RankConstant,
    RankTermSum,
    ReciprocalRanks,
    ScaledScoreSum,
)
from fusion_bench.engines.dialects._translation import (
    CanonicalFusion,
    Draft,
    ReciprocalRankSum,
    name_weights,
)
from fusion_bench.experiment.dialect import Configuration, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import EngineForm, Fusion, Homogeneity, RankSum, WeightedFusion
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.fuse.weighted_score import DistributionBasedFusion
from fusion_bench.methods.normalize import Normalizer
from fusion_bench.methods.normalize.linear import DBSF, RawScores

#: A position so deep that what it adds vanishes in 32 bits.
NOWHERE = 1e12
#: Below the score of any document that all lists have; the others have 0 and are dropped.
DROPPED = 1e-9


class ChromaRRF(ReciprocalRanks, WeightedFusion):
    """``rrf``: Σ_s w_s / (k + position), positions from 0; Chroma negates it.

    Attributes:
        k: Flattens the difference between neighboring positions.
        weights: By source name or role.
        normalize: Whether the weights are divided by their sum.
        default: Position of a document that a list lacks; None = it is not returned at all, so
            that only documents of every list are.
    """

    hidden_if_none = frozenset({"default"})
    formula = "Σ w/(k + position)"
    source = "Chroma documentation, hybrid search; chromadb operator.py"
    ties = "first_seen"  # of what is written for a server of one's own; Chroma Cloud's is unknown

    first_rank = 0

    method: str = "rrf"
    k: Annotated[int, Field(ge=1, le=GREATEST_K + 1)] = 60
    normalize: bool = False
    default: Annotated[float, Field(ge=0)] | None = None

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights by name or role."""
        weights = super().source_weights(sources, roles)
        return np.asarray(weights / weights.sum()) if self.normalize else weights

    def _tables(self, runs: AlignedRuns) -> FloatArray:
        """(S, D+1): the term of each source at each rank; at rank 0, of the default position."""
        tables = super()._tables(runs)
        if self.default is not None:
            tables[:, 0] = self.source_weights(runs.sources, runs.roles) / (self.k + self.default)
        return tables

    def source_terms(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the terms; without a default all are 0 where a list lacks the document."""
        terms = super().source_terms(runs)
        if self.default is not None:
            return terms
        return np.where((runs.ranks > 0).all(axis=0), terms, 0.0)

    def engine_form(self, runs: AlignedRuns) -> RankSum | EngineForm | None:  # type: ignore[override]
        """The terms at every rank; without a default, the scores."""
        if self.default is not None:
            return super().engine_form(runs)
        return Fusion.engine_form(self, runs)

    def equivalent(self, weights: dict[str, float], /) -> Fusion | None:
        """Our ``rrf``, where a missing document adds nothing that 32 bits can tell."""
        is_negligible = self.default is not None and self.default >= NOWHERE
        return super().equivalent(weights) if is_negligible else None


@dialects.register
class Chroma(EngineDialect):
    """Chroma 1.x, search API."""

    name = "chroma"
    title = "Chroma"
    version = "1.3"
    checked = "2026-11-23"
    source = "https://docs.trychroma.com/cloud/search-api/hybrid-search"
    methods = (ChromaRRF,)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 16, "min_relevance": DROPPED}  # limit of Knn
    rank_base = 0
    ignores = (
        "Scores are ignored.",
        "Without a default, a document that a list lacks is not returned.",
        "A bonus for top ranks cannot be said.",
    )

    forms = (Form({"search.py": read_template("chroma.py")}),)
    notes = (
        "Replace each key by the embedding of its list, and QUERY by its text or vector.",
        "return_rank=True is needed: without it, Rrf adds distances to k.",
        "search.py is for Chroma Cloud alone: a server or a folder of one's own has no search API "
        "(status 501). local.py fuses there what each list returns.",
    )

    @classmethod
    def convert(cls, draft: Draft) -> Mapping[str, Any]:
        """Sums of reciprocal ranks; missing documents get a very deep position."""
        return {**super().convert(draft), "default": NOWHERE}

    @classmethod
    def write_by_role(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Configuration:
        """Write the files, with the fusion in Python too, for servers without the search API."""
        search = super().write_by_role(system, roles)
        values = {"default": None, **cls.list_values(system, roles)}
        local = fill_text(read_template("chroma_local.py"), values)
        return Configuration({**search.files, "local.py": local}, search.notes)


#: Most documents of a search.
MOST_DOCUMENTS = 16_384
Metric: TypeAlias = Literal["COSINE", "IP", "BM25", "L2"]
UnitWeight: TypeAlias = Annotated[float, Field(ge=0, le=1)]


class MilvusRRF(CanonicalRRF):
    """``rrf``: Σ_s 1 / (k + rank), ranks from 1; no weights.

    Attributes:
        k: Flattens the difference between neighboring ranks.
    """

    formula = "Σ 1/(k + rank)"
    source = "Milvus documentation, RRF ranker"

    method: str = "rrf"
    k: Annotated[float, Field(gt=0, le=1000)] = 60


class MilvusWeighted(ScaledScoreSum, WeightedFusion):
    """``weighted``: Σ_s w_s·x; missing documents add nothing.

    Attributes:
        weights: By source name or role, at most 1 each.
        norm_score: Whether each score is put on [0, 1] by its metric; else it stays as it is.
        metric: Of all lists, or by source name. ``L2`` takes scores that are negative distances.
    """

    formula = "Σ w·score on [0, 1] by its metric"
    source = "Milvus documentation, weighted ranker"

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


@dialects.register
class Milvus(EngineDialect):
    """Milvus 2.6."""

    name = "milvus"
    title = "Milvus"
    version = "2.6"
    checked = "2026-11-23"
    source = "https://milvus.io/docs/reranking.md"
    methods = (MilvusRRF, MilvusWeighted)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 10, "top_k": 10}  # limit
    ignores = (
        "RRFRanker has no weights.",
        "WeightedRanker scales by the metric, not by the list: there is no min-max.",
        "A bonus for top ranks cannot be said.",
    )

    forms = (Form({"search.py": read_template("milvus.py")}),)
    notes = (
        'Replace each "QUERY" by the vector or text of its list, anns_field by its field, and '
        "metric_type by the field's metric.",
    )
    lists = (2, 1000)
    no_weights = "RRFRanker has none; they are left out"
    collapse_rule = "group_by_field keeps one chunk of a document in each search"
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
        """Finish the translation, with the longest list that the engine returns."""
        windows = draft.choose_windows(**cls.windows)
        if (windows["top_k"] or 0) > MOST_DOCUMENTS:
            draft.note(f"top_k: at most {MOST_DOCUMENTS} documents are returned")
            windows["top_k"] = MOST_DOCUMENTS
        return draft.finish(fusion, **windows)

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Values of a system, with the ranker and the metrics."""
        values, fusion = super().list_values(system, roles), system.fusion
        if not isinstance(fusion, MilvusWeighted):
            values |= {"ranker": "RRFRanker", "constant": values["k"], "metric": "COSINE"}
            return values
        for each in values["sources"]:
            each["metric"] = fusion.metric_of(each["name"])
        factors = ", ".join(map(repr, values["weights"]))
        return {**values, "ranker": "WeightedRanker", "factors": factors}


QDRANT_FILE = "query.json"


class QdrantRRF(RankConstant, RankTermSum, WeightedFusion):
    """``rrf``: Σ_s 1 / ((position + 1)/w_s + k − 1), positions from 0.

    A weight divides the rank: it stretches or compresses the list, and does not multiply the
    score. With weights of 1 our ``rrf`` of k is this one of k + 1.

    Attributes:
        k: Flattens the difference between neighboring ranks.
        weights: By source name or role; since 1.17.
    """

    formula = "Σ 1/((position + 1)/w + k − 1)"
    source = "Qdrant 1.19, reciprocal_rank_fusion.rs"

    first_rank = 0

    method: str = "rrf"
    k: Annotated[int, Field(ge=1, le=1001)] = 2

    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:
        """(n,): the term of a list of this weight."""
        return 1 / (ranks / weight + self.k - 1)

    def equivalent(self, weights: dict[str, float], /) -> Fusion | None:
        """Our ``rrf``: w/(rank + w·(k − 1)), so that k differs where the weights do."""
        constants = {name: weight * (self.k - 1) for name, weight in weights.items()}
        if max(constants.values()) > GREATEST_K:
            return None
        return RRF(k=constants, weights=weights)

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """Scaling all weights scales the scores only at k = 1."""
        return 1 if self.k == 1 else None


class QdrantDBSF(CanonicalFusion):
    """``dbsf``: Σ_s (x − (mean − 3·sd)) / (6·sd); no weights, missing documents add nothing."""

    formula = "Σ (x − (mean − 3·sd))/(6·sd)"
    source = "Qdrant 1.19, score_fusion.rs"

    method: str = "dbsf"

    @property
    def canonical(self) -> DistributionBasedFusion:
        """Our ``dbsf`` without weights."""
        return DistributionBasedFusion()


QDRANT_REQUEST = {
    "prefetch": Each({"query": "QUERY", "using": Slot("name"), "limit": Slot("window")}),
    "query": {
        "fusion": Maybe("score_fusion"),
        "rrf": Maybe("k", {"k": Slot("k"), "weights": Maybe("weights")}),
    },
    "limit": Slot("top_k"),
    "score_threshold": Maybe("min_score"),
}


@dialects.register
class Qdrant(EngineDialect):
    """Qdrant 1.19."""

    name = "qdrant"
    title = "Qdrant"
    version = "1.19"
    checked = "2026-11-23"
    source = "https://qdrant.tech/documentation/concepts/hybrid-queries/"
    methods = (QdrantRRF, QdrantDBSF)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 10, "top_k": 10}  # limit
    rank_base = 0
    ignores = (
        "A bonus for top ranks cannot be said.",
        "A weight that multiplies the score cannot be said, except at k = 1.",
        "dbsf has no weights.",
    )

    forms = (Form({QDRANT_FILE: QDRANT_REQUEST}),)
    notes = (
        "Send it to POST /collections/COLLECTION/points/query.",
        "Replace each QUERY by the vector of its list, and using by the vector's name.",
        "Weights need version 1.17; a limit of prefetch holds for each shard.",
    )
    minimum_score = "score_threshold (of a server: the local mode of its client ignores it)"
    lists = (2, 1000)
    score_methods: ClassVar[Mapping[str, str]] = {"dbsf": "dbsf"}
    collapse_rule = "groups come from several requests, and each one fuses anew"

    @classmethod
    def convert_ranks(cls, draft: Draft, ranks: ReciprocalRankSum) -> Mapping[str, Any]:
        """w/(c + rank) is Qdrant's term of weight c/(k − 1), if c/w is the same for all lists."""
        constants, weights = ranks.k, ranks.weights
        most = max(constants.values())
        if most == 0:
            return {"k": 1, "weights": name_weights(weights)}
        if ranks.has_equal_weights and set(constants.values()) == {round(most)}:
            return {"k": round(most) + 1}
        ratios = [constants[name] / weights[name] for name in weights]
        if max(ratios) - min(ratios) <= 1e-12 * max(ratios):
            whole = max(1, round(most))
            return {"k": whole + 1, "weights": {name: constants[name] / whole for name in weights}}
        mean = math.fsum(weights.values()) / len(weights)
        draft.lose("weights: a weight divides the rank here, and does not multiply the score")
        constant = draft.choose_rank_constant(ranks, 1, base=0)
        return {"k": constant, "weights": {name: w / mean for name, w in weights.items()}}

    @classmethod
    def convert_scores(cls, draft: Draft, scale: Normalizer) -> Mapping[str, Any]:
        """``dbsf``, which has no weights."""
        super().convert_scores(draft, scale)
        if isinstance(scale, DBSF) and (scale.clip or scale.constant != 0.5):
            draft.lose("normalize: dbsf is not clipped to [0, 1], and equal scores count 0.5")
        if name_weights(draft.weights):
            draft.lose("weights: dbsf has none")
        return {"method": "dbsf"}

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Weights only where they were given."""
        values, fusion = super().list_values(system, roles), system.fusion
        if not isinstance(fusion, QdrantRRF):
            return {**values, "score_fusion": fusion.method}
        return values if fusion.weights else {**values, "weights": []}
