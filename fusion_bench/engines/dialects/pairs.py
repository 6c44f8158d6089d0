"""Engines that fuse one keyword search with one vector search: LanceDB, semche, Weaviate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from fusion_bench.config.models import Weight
from fusion_bench.config.parameters import Parameter, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.engines.dialects._dialect import EngineDialect, Form, Values, read_template, share
from fusion_bench.engines.dialects._sums import (
    GREATEST_K,
    PairFusion,
    RankConstant,
    ReciprocalRanks,
    ScaledScoreSum,
    TermSum,
)
from fusion_bench.engines.dialects._translation import Draft, ReciprocalRankSum
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.normalize import Normalizer
from fusion_bench.methods.normalize.linear import MinMax

#: How far the sum of the weights of MRRReranker may be from 1.
TOLERANCE = 1e-6
Share = Annotated[float, Field(ge=0, le=1)]


class LanceFusion(PairFusion):
    """A full-text search and a vector search.

    Attributes:
        vector: Which source is the vector search; None = the only one of role ``semantic``.
    """

    vector: str | None = None


class RRFReranker(LanceFusion, ReciprocalRanks):
    """``RRFReranker``: Σ_s 1 / (K + rank), ranks from 1; no weights.

    Attributes:
        K: Flattens the difference between neighboring ranks.
    """

    formula = "Σ 1/(K + rank)"
    source = "LanceDB, rerankers/rrf.py"

    constant_field = "K"

    method: str = "RRFReranker"
    K: Annotated[int, Field(ge=1, le=1000)] = 60

    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:  # noqa: ARG002 - no weights
        """(n,): the term of either list."""
        return super().term_at(ranks, 1.0)


class MRRReranker(LanceFusion, ReciprocalRanks):
    """``MRRReranker``: Σ_s w_s / rank, ranks from 1.

    Attributes:
        weight_vector: Weight of the vector search.
        weight_fts: Weight of the full-text search; 1 − weight_vector.
    """

    formula = "Σ w/rank"
    source = "LanceDB, rerankers/mrr.py"

    constant_field = ""

    method: str = "MRRReranker"
    weight_vector: Share = 0.5
    weight_fts: Share = 0.5

    @model_validator(mode="after")
    def _check_sum(self) -> MRRReranker:
        total = self.weight_vector + self.weight_fts
        if abs(total - 1) > TOLERANCE:
            raise ValueError(f"weight_vector + weight_fts must be 1, given {total:g}")
        return self

    @property
    def vector_share(self) -> float:
        """``weight_vector``."""
        return self.weight_vector


class LinearCombinationReranker(LanceFusion, TermSum):
    """``LinearCombinationReranker``: weight·vector + (1 − weight)·text, min-max scores.

    Attributes:
        weight: Weight of the vector search.
        fill: 1 − the score of a document that a list lacks.
    """

    formula = "weight·vector + (1 − weight)·text, min-max"
    source = "LanceDB, rerankers/linear_combination.py and query.py"

    share_field = "weight"

    method: str = "LinearCombinationReranker"
    weight: Share = 0.7
    fill: Annotated[float, Field(allow_inf_nan=False)] = 1.0

    def source_terms(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the weighted scores; a list counts alone where the other one is empty."""
        weights = self.source_weights(runs.sources, runs.roles)
        terms: FloatArray = np.zeros(runs.scores.shape)
        lengths = runs.lengths[:, runs.query_index]
        for s, is_vector in enumerate(self.are_vectors(runs.sources, runs.roles)):
            scale = MinMax(constant=1 if is_vector else 0)  # of equal distances, of equal scores
            scores = scale.normalize_scores(runs)[s]
            filled = weights[s] * np.where(np.isnan(scores), 1 - self.fill, scores)
            others = np.delete(lengths, s, axis=0).sum(axis=0)
            terms[s] = np.where(others > 0, filled, np.nan_to_num(scores))
            terms[s, lengths[s] == 0] = 0.0
        return terms


@dialects.register
class LanceDB(EngineDialect):
    """LanceDB, Python client, after the corrections of 2026."""

    name = "lancedb"
    title = "LanceDB"
    version = "August 2026"
    checked = "2026-11-22"
    source = "https://docs.lancedb.com/integrations/reranking/rrf"
    methods = (RRFReranker, MRRReranker, LinearCombinationReranker)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 10, "top_k": 10}  # limit
    ignores = (
        "RRFReranker has no weights.",
        "Two searches are fused, a full-text search and a vector search, and no more.",
        "A bonus for top ranks, and a depth of its own for each list, cannot be said.",
    )

    forms = (Form({"search.py": read_template("lancedb.py")}),)
    notes = ("Replace vector_column_name and fts_columns by your columns, [0.0] by the vector.",)
    is_pair = True
    windows: ClassVar[Mapping[str, bool]] = {"cut_to_window": True}
    no_weights = "RRFReranker has none; they are left out"
    score_methods: ClassVar[Mapping[str, str]] = {"min_max": "LinearCombinationReranker"}

    @classmethod
    def convert_ranks(cls, draft: Draft, ranks: ReciprocalRankSum) -> Mapping[str, Any]:
        """``MRRReranker`` for k = 0, else ``RRFReranker``."""
        if set(ranks.k.values()) != {0}:
            return super().convert_ranks(draft, ranks)
        weight = share(draft.weights)[draft.find_vector()]
        return {"method": "MRRReranker", "weight_vector": weight, "weight_fts": 1 - weight}

    @classmethod
    def convert_scores(cls, draft: Draft, scale: Normalizer) -> Mapping[str, Any]:
        """The linear reranker for min-max scores, whose constants may differ by list."""
        vector = draft.find_vector()
        scales = {name: draft.normalizer_of(scale, name) for name in draft.sources}
        if unknown := {each.method for each in scales.values()} - {"min_max"}:
            draft.refuse(f"normalize: {cls.title} has no {', '.join(sorted(unknown))}")
        if all(each.constant == (name == vector) for name, each in scales.items()):
            draft.lose("a list counts alone where the other one is empty", "rank-equivalent")
        else:
            draft.lose("normalize: equal full-text scores of a list count 0, equal distances 1")
        return {"method": "LinearCombinationReranker", "weight": share(draft.weights)[vector]}

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Values of a system, with the arguments of the reranker."""
        values = super().list_values(system, roles)
        given = system.fusion.model_dump(exclude={"method", "vector"})
        values["arguments"] = ", ".join(f"{key}={value!r}" for key, value in given.items())
        values["top_k"] = min(system.top_k or values["window"], values["window"])
        if "fill" in given:
            values["notes"] = (
                "LinearCombinationReranker needs pull request 3437 of May 2026: before it, the "
                "order was inverted.",
            )
        return values


class SemcheRRF(PairFusion, ReciprocalRanks):
    """``rrf``: dense_weight / (c + dense rank) + sparse_weight / (c + sparse rank), ranks from 1.

    Attributes:
        rrf_constant: c, which flattens the difference between neighboring ranks.
        dense_weight: Of the vector search.
        sparse_weight: Of BM25.
        vector: Which source is the vector search; None = the only one of role ``semantic``.
    """

    hidden_if_none = frozenset({"vector"})
    formula = "Σ w/(c + rank)"
    source = "semche 0.4.0, hybrid_retriever.py"

    constant_field = "rrf_constant"

    method: str = "rrf"
    rrf_constant: Annotated[int, Field(ge=0, le=GREATEST_K)] = 60
    dense_weight: Weight = 0.5
    sparse_weight: Weight = 0.5
    vector: str | None = None

    @model_validator(mode="after")
    def _check_weights(self) -> SemcheRRF:
        if self.dense_weight + self.sparse_weight <= 0:
            raise ValueError("dense_weight and sparse_weight: one must be above 0")
        return self

    @property
    def vector_share(self) -> float:
        """The part of ``dense_weight``."""
        return self.dense_weight / (self.dense_weight + self.sparse_weight)

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): the weights of the two.

        Raises:
            ConfigError: The sources are no such pair.
        """
        super().source_weights(sources, roles)
        are_vectors = self.are_vectors(sources, roles)
        return np.where(are_vectors, self.dense_weight, self.sparse_weight)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The constant and the weights."""
        weights = (real("dense_weight", 0.0, 1.0), real("sparse_weight", 0.0, 1.0))
        return (*RankConstant.space(self, sources), *weights)


@dialects.register
class Semche(EngineDialect):
    """semche 0.4.0."""

    name = "semche"
    title = "semche"
    version = "0.4.0"
    checked = "2026-11-22"
    source = "https://plg.uwaterloo.ca/~gvcormac/cormacksigir09-rrf.pdf"
    methods = (SemcheRRF,)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 10, "top_k": 5}  # twice top_k, top_k
    precision = "float64"
    ignores = (
        "Two searches are fused, a vector search and BM25, and no more.",
        "Each list has twice as many documents as are returned.",
        "A bonus for top ranks cannot be said.",
    )

    forms = (Form({"search.py": read_template("semche.py")}),)
    notes = ("Each search fetches twice top_k. BM25 appends documents of score 0 up to there.",)
    is_pair = True
    windows: ClassVar[Mapping[str, bool]] = {}

    @classmethod
    def convert_ranks(cls, draft: Draft, ranks: ReciprocalRankSum) -> Mapping[str, Any]:
        """Convert reciprocal ranks, with the weights of the two searches."""
        vector = draft.find_vector()
        (other,) = (name for name in draft.sources if name != vector)
        weights = {"dense_weight": ranks.weights[vector], "sparse_weight": ranks.weights[other]}
        return {**super().convert_ranks(draft, ranks), **weights}

    @classmethod
    def finish(cls, draft: Draft, fusion: Mapping[str, Any]) -> Translation:
        """``depth`` is twice the ``top_k`` of the call, whose result may be cut further."""
        depth, top_k = draft.choose_windows()["depth"], draft.system.top_k
        called = max((depth + 1) // 2, top_k or 0)
        if 2 * called != depth:
            draft.lose(f"depth: {2 * called} instead of {depth}: twice the documents it returns")
        if top_k is None and draft.system.depth is not None:
            draft.lose(f"top_k: {cls.title} returns at most half of its window, {called}")
        return draft.finish(fusion, depth=2 * called, top_k=top_k or called)

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Values of a system, with half a window: the number of each call."""
        values = super().list_values(system, roles)
        half, is_odd = divmod(values["window"], 2)
        if is_odd or (system.top_k or 1) > half:
            raise ConfigError(
                f"system {system.name!r}: depth: it must be even and at least twice top_k: "
                "translate it first"
            )
        return {**values, "half": half, "top_k": system.top_k or half}


#: Variable of the server: how many documents either search fetches.
WINDOW = "QUERY_HYBRID_MAXIMUM_RESULTS"
#: Our names of the methods → those of the Python client.
CLIENT_NAMES = {"relativeScoreFusion": "RELATIVE_SCORE", "rankedFusion": "RANKED"}


class WeaviateFusion(PairFusion):
    """A keyword search of weight 1 − alpha and a vector search of weight alpha.

    Attributes:
        alpha: Weight of the vector search.
        vector: Which source that is; None = the only one of role ``semantic``.
    """

    share_field = "alpha"

    alpha: Annotated[float, Field(ge=0, le=1)] = 0.75
    vector: str | None = None


class RelativeScoreFusion(WeaviateFusion, ScaledScoreSum):
    """``relativeScoreFusion``: Σ_s w_s·(x − min) / (max − min); 1 for equal scores."""

    formula = "Σ w·(x − min)/(max − min)"
    source = "Weaviate, usecases/traverser/hybrid/hybrid_fusion.go"

    scale = our_scale = MinMax()

    method: str = "relativeScoreFusion"


class RankedFusion(WeaviateFusion, ReciprocalRanks):
    """``rankedFusion``: Σ_s w_s / (60 + position), positions from 0."""

    formula = "Σ w/(60 + position)"
    source = "Weaviate, usecases/traverser/hybrid/hybrid_fusion.go"

    constant_field = ""
    fixed_constant = 59

    method: str = "rankedFusion"


@dialects.register
class Weaviate(EngineDialect):
    """Weaviate since 1.24."""

    name = "weaviate"
    title = "Weaviate"
    version = "1.24"
    checked = "2026-11-23"
    source = "https://docs.weaviate.io/weaviate/concepts/search/hybrid-search"
    methods = (RelativeScoreFusion, RankedFusion)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 100, "top_k": 10}
    rank_base = 0
    ignores = (
        "The constant of rankedFusion cannot be set.",
        "Two searches are fused, a keyword search and a vector search, and no more.",
        "A bonus for top ranks, and a depth of its own for each list, cannot be said.",
    )

    forms = tuple(
        Form(
            {
                "search.py": read_template("weaviate.py").replace("$client_name", name),
                "weaviate.env": f"{WINDOW}=$window\n",
            },
            {"method": method},
        )
        for method, name in CLIENT_NAMES.items()
    )
    notes = (
        "Replace query_properties and target_vector by your property and vector.",
        f"Set {WINDOW} on the server; it is 100 by default, and at least the limit counts.",
    )
    is_pair = True
    windows: ClassVar[Mapping[str, bool]] = {}
    constant_rule = f"the constant is fixed, our k = {RankedFusion.fixed_constant}"
    score_methods: ClassVar[Mapping[str, str]] = {"min_max": "relativeScoreFusion"}
    equal_scores = 1
    most_chunks = 1000

    @classmethod
    def convert(cls, draft: Draft) -> Mapping[str, Any]:
        """Convert the fusion, with the weight of the vector search."""
        method = super().convert(draft)["method"]
        return {"method": method, "alpha": share(draft.weights)[draft.find_vector()]}

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Values of a system; the whole window where it is grouped."""
        values = super().list_values(system, roles)
        if "parent" not in values:
            return {**values, "limit": values["top_k"], "classes": "HybridFusion"}
        return {**values, "limit": values["window"], "classes": "GroupBy, HybridFusion"}
