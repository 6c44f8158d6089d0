"""semche: reciprocal rank fusion of a dense search and BM25."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from fusion_bench.config.models import Weight
from fusion_bench.config.parameters import Parameter, real
from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._configuration import Values
from fusion_bench.engines.dialects._dialect import EngineDialect, Form
from fusion_bench.engines.dialects._sums import (
    GREATEST_K,
    PairFusion,
    RankConstant,
    ReciprocalRanks,
)
from fusion_bench.engines.dialects._translation import Draft, ReciprocalRankSum
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Translation, dialects
from fusion_bench.experiment.system import System


class SemcheRRF(PairFusion, ReciprocalRanks):
    """``rrf``: dense_weight / (c + dense rank) + sparse_weight / (c + sparse rank), ranks from 1.

    Attributes:
        rrf_constant: c, which flattens the difference between neighboring ranks.
        dense_weight: Of the vector search.
        sparse_weight: Of BM25.
        vector: Which source is the vector search; None = the only one of role ``semantic``.
    """

    hidden_if_none: ClassVar[frozenset[str]] = frozenset({"vector"})
    formula: ClassVar[str] = "Σ w/(c + rank)"
    source: ClassVar[str] = "semche 0.4.0, hybrid_retriever.py"

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


CODE = """\
from semche.hybrid_retriever import HybridRetriever

# What each search is called in the benchmark.
DENSE = $vector!r
SPARSE = $other!r

# chroma_manager = ChromaDBManager(...)
retriever = HybridRetriever(
    chroma_manager,
    dense_weight=$dense_weight,
    sparse_weight=$sparse_weight,
)
results = retriever.search("QUERY", top_k=$half, rrf_constant=$rrf_constant)
TOP_K = $top_k
results = results[:TOP_K]
"""


@dialects.register
class Semche(EngineDialect):
    """semche 0.4.0."""

    name = "semche"
    title = "semche"
    version = "0.4.0"
    source = "https://plg.uwaterloo.ca/~gvcormac/cormacksigir09-rrf.pdf"
    methods = (SemcheRRF,)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 10, "top_k": 5}  # twice top_k, top_k
    precision = "float64"
    ignores = (
        "Two searches are fused, a vector search and BM25, and no more.",
        "Each list has twice as many documents as are returned.",
        "A bonus for top ranks cannot be said.",
    )

    forms = (Form({"search.py": CODE}),)
    notes = ("Each search fetches twice top_k. BM25 appends documents of score 0 up to there.",)
    is_pair = True
    windows: ClassVar[Mapping[str, bool]] = {}

    @classmethod
    def convert_ranks(cls, draft: Draft, ranks: ReciprocalRankSum) -> Mapping[str, Any]:
        """With the weights of the two."""
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
        """With the number of the call: half a window."""
        values = super().list_values(system, roles)
        half, is_odd = divmod(values["window"], 2)
        if is_odd or (system.top_k or 1) > half:
            raise ConfigError(
                f"system {system.name!r}: depth: it must be even and at least twice top_k: "
                "translate it first"
            )
        return {**values, "half": half, "top_k": system.top_k or half}

    @classmethod
    def make_system(cls, values: Values) -> dict[str, Any]:
        """With the whole window."""
        return super().make_system({**values, "window": 2 * values["half"]})
