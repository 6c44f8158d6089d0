"""semche: reciprocal rank fusion of a dense search and BM25."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from fusion_bench.config.models import Weight
from fusion_bench.config.parameters import Parameter, integer, real
from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    common_window,
    find_call,
    find_constants,
    parse_python,
    refuse_unreadable,
)
from fusion_bench.engines.dialects._sums import (
    GREATEST_K,
    NO_PAIR,
    ReciprocalRanks,
    find_vector_source,
    vector_first,
    weigh_pair,
)
from fusion_bench.engines.dialects._translation import Draft
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import SEMANTIC

FILE = "search.py"


class SemcheRRF(ReciprocalRanks):
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
    def constant(self) -> float:
        """``rrf_constant``: ranks count from 1."""
        return self.rrf_constant

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): the weights of the two.

        Raises:
            ConfigError: The sources are no such pair.
        """
        share = self.dense_weight / (self.dense_weight + self.sparse_weight)
        weigh_pair(sources, roles, self.vector, share)
        are_vectors = [
            SEMANTIC in role if self.vector is None else name == self.vector
            for name, role in zip(sources, roles, strict=True)
        ]
        return np.where(are_vectors, self.dense_weight, self.sparse_weight)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - always two
        """The constant and the weights."""
        weights = (real("dense_weight", 0.0, 1.0), real("sparse_weight", 0.0, 1.0))
        return (integer("rrf_constant", 1, GREATEST_K, log=True), *weights)


@dialects.register
class Semche(Dialect):
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

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """Sums of reciprocal ranks of a vector search and another one."""
        draft = Draft(cls, system, roles)
        vector = find_vector_source(draft)
        if draft.is_of_dialect and len(draft.sources) == 2:
            vector = system.fusion.model_dump().get("vector") or vector
        if vector is None:
            return draft.refuse(NO_PAIR)
        fusion: dict[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
        elif (ranks := draft.find_reciprocal_ranks()) is not None:
            (other,) = (name for name in draft.sources if name != vector)
            fusion = {
                "rrf_constant": draft.choose_rank_constant(ranks, 0),
                "dense_weight": ranks.weights[vector],
                "sparse_weight": ranks.weights[other],
            }
        else:
            return draft.refuse_fusion()
        return draft.finish({**fusion, "vector": vector}, **cls._windows(draft))

    @classmethod
    def _windows(cls, draft: Draft) -> dict[str, Any]:
        """``depth`` is twice the ``top_k`` of the call, whose result may be cut further."""
        depth, top_k = draft.choose_windows()["depth"], draft.system.top_k
        called = max((depth + 1) // 2, top_k or 0)
        if 2 * called != depth:
            draft.lose(f"depth: {2 * called} instead of {depth}: twice the documents it returns")
        if top_k is None and draft.system.depth is not None:
            draft.lose(f"top_k: {cls.title} returns at most half of its window, {called}")
        return {"depth": 2 * called, "top_k": top_k or called}

    @classmethod
    def write(cls, system: System) -> Configuration:
        """Python that searches."""
        check_writable(cls, system)
        fusion, window = system.fusion.model_dump(), common_window(system)
        vector, text = vector_first(system, fusion.get("vector"))
        if window % 2 or (system.top_k or 1) > window // 2:
            raise ConfigError(
                f"system {system.name!r}: depth: it must be even and at least twice top_k: "
                "translate it first"
            )
        code = f"""\
from semche.hybrid_retriever import HybridRetriever

# What each search is called in the benchmark.
DENSE = {vector!r}
SPARSE = {text!r}

# chroma_manager = ChromaDBManager(...)
retriever = HybridRetriever(
    chroma_manager,
    dense_weight={fusion["dense_weight"]!r},
    sparse_weight={fusion["sparse_weight"]!r},
)
results = retriever.search("QUERY", top_k={window // 2}, rrf_constant={fusion["rrf_constant"]})
TOP_K = {system.top_k or window // 2}
results = results[:TOP_K]
"""
        return Configuration(
            {FILE: code},
            ("Each search fetches twice top_k. BM25 appends documents of score 0 up to there.",),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from Python that searches.

        Raises:
            ConfigError: It is none.
        """
        tree = parse_python(files, FILE)
        with refuse_unreadable(FILE, cls.title):
            constants = find_constants(tree)
            _, weights = find_call(tree, "HybridRetriever")
            _, search = find_call(tree, "search")
            names = [constants["SPARSE"], constants["DENSE"]]
            window = 2 * int(search.get("top_k", 5))
            fusion = {
                "rrf_constant": search.get("rrf_constant", 60),
                "dense_weight": weights.get("dense_weight", 0.5),
                "sparse_weight": weights.get("sparse_weight", 0.5),
                "vector": names[1],
            }
        system = {"runs": names, "dialect": cls.name, "fusion": fusion, "depth": window}
        return {**system, "top_k": constants.get("TOP_K", window // 2)}
