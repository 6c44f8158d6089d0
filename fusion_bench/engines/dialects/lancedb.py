"""LanceDB: the RRF, MRR and linear combination rerankers of hybrid search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from fusion_bench.config.parameters import Parameter, integer, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    common_window,
    find_call,
    parse_python,
    refuse_unreadable,
)
from fusion_bench.engines.dialects._sums import (
    NO_PAIR,
    RankTermSum,
    TermSum,
    find_vector_source,
    vector_first,
    weigh_pair,
)
from fusion_bench.engines.dialects._translation import Draft, EngineFusion
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import Fusion
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.normalize import Normalizer
from fusion_bench.methods.normalize.linear import MinMax

FILE = "search.py"
#: How far the sum of the weights of MRRReranker may be from 1.
TOLERANCE = 1e-6
Share = Annotated[float, Field(ge=0, le=1)]


class LanceFusion(EngineFusion):
    """A full-text search and a vector search.

    Attributes:
        vector: Which source is the vector search; None = the only one of role ``semantic``.
    """

    vector: str | None = None

    @property
    def vector_share(self) -> float:
        """The weight of the vector search; the full-text search has the rest of 1."""
        return 0.5

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): the weights of the two.

        Raises:
            ConfigError: The sources are no such pair.
        """
        return weigh_pair(sources, roles, self.vector, self.vector_share)

    def _reciprocal_ranks(
        self, k: float, sources: Sequence[str], roles: Sequence[frozenset[str]]
    ) -> RRF:
        weights = self.source_weights(sources, roles).tolist()
        return RRF(k=k, weights=dict(zip(sources, weights, strict=True)))


class RRFReranker(LanceFusion, RankTermSum):
    """``RRFReranker``: Σ_s 1 / (K + rank), ranks from 1; no weights.

    Attributes:
        K: Flattens the difference between neighboring ranks.
    """

    formula: ClassVar[str] = "Σ 1/(K + rank)"
    source: ClassVar[str] = "LanceDB, rerankers/rrf.py"

    method: str = "RRFReranker"
    K: Annotated[int, Field(ge=1, le=1000)] = 60

    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:  # noqa: ARG002 - no weights
        """(n,): the term of either list."""
        return np.asarray(1 / (ranks + self.K))

    def equivalent(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> Fusion:
        """Our ``rrf``."""
        return self._reciprocal_ranks(self.K, sources, roles)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no weights
        """K, evenly by its logarithm."""
        return (integer("K", 1, 1000, log=True),)


class MRRReranker(LanceFusion, RankTermSum):
    """``MRRReranker``: Σ_s w_s / rank, ranks from 1.

    Attributes:
        weight_vector: Weight of the vector search.
        weight_fts: Weight of the full-text search; 1 − weight_vector.
    """

    formula: ClassVar[str] = "Σ w/rank"
    source: ClassVar[str] = "LanceDB, rerankers/mrr.py"

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

    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:
        """(n,): the term of a list of this weight."""
        return np.asarray(weight / ranks)

    def equivalent(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> Fusion:
        """Our ``rrf`` of k = 0."""
        return self._reciprocal_ranks(0, sources, roles)


class LinearCombinationReranker(LanceFusion, TermSum):
    """``LinearCombinationReranker``: weight·vector + (1 − weight)·text, min-max scores.

    Attributes:
        weight: Weight of the vector search.
        fill: 1 − the score of a document that a list lacks.
    """

    formula: ClassVar[str] = "weight·vector + (1 − weight)·text, min-max"
    source: ClassVar[str] = "LanceDB, rerankers/linear_combination.py and query.py"

    method: str = "LinearCombinationReranker"
    weight: Share = 0.7
    fill: Annotated[float, Field(allow_inf_nan=False)] = 1.0

    @property
    def vector_share(self) -> float:
        """``weight``."""
        return self.weight

    def source_terms(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the weighted scores; a list counts alone where the other one is empty."""
        weights = self.source_weights(runs.sources, runs.roles)
        terms: FloatArray = np.zeros(runs.scores.shape)
        lengths = runs.lengths[:, runs.query_index]
        for s, (name, role) in enumerate(zip(runs.sources, runs.roles, strict=True)):
            is_vector = name == self.vector if self.vector else "semantic" in role
            scale = MinMax(constant=1 if is_vector else 0)  # of equal distances, of equal scores
            scores = scale.normalize_scores(runs)[s]
            filled = weights[s] * np.where(np.isnan(scores), 1 - self.fill, scores)
            others = np.delete(lengths, s, axis=0).sum(axis=0)
            terms[s] = np.where(others > 0, filled, np.nan_to_num(scores))
            terms[s, lengths[s] == 0] = 0.0
        return terms

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - always two
        """The weight."""
        return (real("weight", 0.0, 1.0),)


@dialects.register
class LanceDB(Dialect):
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

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """``MRRReranker`` for k = 0, else ``RRFReranker``; the linear one for min-max scores."""
        draft = Draft(cls, system, roles)
        vector = find_vector_source(draft)
        if draft.is_of_dialect and len(draft.sources) == 2:
            vector = system.fusion.model_dump()["vector"] or vector
        if vector is None:
            return draft.refuse(NO_PAIR)
        share = draft.weights[vector] / sum(draft.weights.values())
        fusion: dict[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
        elif (ranks := draft.find_reciprocal_ranks()) is not None:
            if set(ranks.k.values()) == {0}:
                fusion = {"method": "MRRReranker", "weight_vector": share, "weight_fts": 1 - share}
            else:
                if not ranks.has_equal_weights:
                    draft.lose("weights: RRFReranker has none; they are left out")
                fusion = {"method": "RRFReranker", "K": draft.choose_rank_constant(ranks, 1)}
        elif (mean := draft.find_score_sum()) is not None:
            scales = {name: draft.normalizer_of(mean.normalize, name) for name in draft.sources}
            if unknown := {scale.method for scale in scales.values()} - {"min_max"}:
                return draft.refuse(f"normalize: {cls.title} has no {', '.join(sorted(unknown))}")
            cls._compare_constants(draft, scales, vector)
            fusion = {"method": "LinearCombinationReranker", "weight": share}
        else:
            return draft.refuse_fusion()
        windows = draft.choose_windows(cut_to_window=True)
        return draft.finish({**fusion, "vector": vector}, **windows)

    @classmethod
    def _compare_constants(
        cls, draft: Draft, scales: Mapping[str, Normalizer], vector: str
    ) -> None:
        """Say what becomes of lists of equal scores, and of empty ones."""
        if all(scale.constant == (name == vector) for name, scale in scales.items()):
            draft.lose("a list counts alone where the other one is empty", "rank-equivalent")
        else:
            draft.lose("normalize: equal full-text scores of a list count 0, equal distances 1")

    @classmethod
    def write(cls, system: System) -> Configuration:
        """Python for the client."""
        check_writable(cls, system)
        fusion = system.fusion.model_dump()
        window = common_window(system)
        vector, text = vector_first(system, fusion["vector"])
        given = {key: value for key, value in fusion.items() if key not in {"method", "vector"}}
        arguments = ", ".join(f"{key}={value!r}" for key, value in given.items())
        code = f"""from lancedb.rerankers import {fusion["method"]}

# table = lancedb.connect("URI").open_table("TABLE")
results = (
    table.search(query_type="hybrid", vector_column_name={vector!r}, fts_columns={text!r})
    .vector([0.0])
    .text("QUERY")
    .rerank({fusion["method"]}({arguments}))
    .limit({window})
    .to_list()
)[:{min(system.top_k or window, window)}]
"""
        notes = ["Replace vector_column_name and fts_columns by your columns, [0.0] by the vector."]
        if fusion["method"] == "LinearCombinationReranker":
            notes.append(
                "LinearCombinationReranker needs pull request 3437 of May 2026: before it, the "
                "order was inverted."
            )
        return Configuration({FILE: code}, tuple(notes))

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from Python for the client.

        Raises:
            ConfigError: It is none.
        """
        tree = parse_python(files, FILE)
        with refuse_unreadable(FILE, cls.title):
            method, arguments = find_call(tree, *cls.fusions().load_built_in())
            _, search = find_call(tree, "search")
            _, limit = find_call(tree, "limit")
            vector, text = search["vector_column_name"], search["fts_columns"]
            window = limit["0"]
            top_k = int(files[FILE].rpartition("[:")[2].partition("]")[0] or window)
        return {
            "runs": [text, vector],
            "dialect": cls.name,
            "fusion": {"method": method, "vector": vector, **arguments},
            "depth": window,
            "top_k": top_k,
        }
