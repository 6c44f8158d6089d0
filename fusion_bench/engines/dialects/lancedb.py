"""LanceDB: the RRF, MRR and linear combination rerankers of hybrid search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.engines.dialects._configuration import Values
from fusion_bench.engines.dialects._dialect import EngineDialect, Form, share
from fusion_bench.engines.dialects._sums import PairFusion, ReciprocalRanks, TermSum
from fusion_bench.engines.dialects._translation import Draft, ReciprocalRankSum
from fusion_bench.experiment.dialect import dialects
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

    formula: ClassVar[str] = "Σ 1/(K + rank)"
    source: ClassVar[str] = "LanceDB, rerankers/rrf.py"

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

    formula: ClassVar[str] = "Σ w/rank"
    source: ClassVar[str] = "LanceDB, rerankers/mrr.py"

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

    formula: ClassVar[str] = "weight·vector + (1 − weight)·text, min-max"
    source: ClassVar[str] = "LanceDB, rerankers/linear_combination.py and query.py"

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


CODE = """\
from lancedb.rerankers import $method

# table = lancedb.connect("URI").open_table("TABLE")
results = (
    table.search(query_type="hybrid", vector_column_name=$vector!r, fts_columns=$other!r)
    .vector([0.0])
    .text("QUERY")
    .rerank($method($arguments!t))
    .limit($window)
    .to_list()
)[:$top_k]
"""


@dialects.register
class LanceDB(EngineDialect):
    """LanceDB, Python client, after the corrections of 2026."""

    name = "lancedb"
    title = "LanceDB"
    version = "August 2026"
    source = "https://docs.lancedb.com/integrations/reranking/rrf"
    methods = (RRFReranker, MRRReranker, LinearCombinationReranker)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 10, "top_k": 10}  # limit
    ignores = (
        "RRFReranker has no weights.",
        "Two searches are fused, a full-text search and a vector search, and no more.",
        "A bonus for top ranks, and a depth of its own for each list, cannot be said.",
    )

    forms = (Form({"search.py": CODE}),)
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
        """With the arguments of the reranker."""
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

    @classmethod
    def make_system(cls, values: Values) -> dict[str, Any]:
        """With the numbers of the reranker."""
        given = dict(argument.split("=") for argument in values["arguments"].split(", "))
        return super().make_system({**values, **{key: float(given[key]) for key in given}})
