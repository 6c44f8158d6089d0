"""Chroma: ``Rrf`` of the search API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._dialect import EngineDialect, Form
from fusion_bench.engines.dialects._sums import GREATEST_K, ReciprocalRanks
from fusion_bench.engines.dialects._translation import Draft
from fusion_bench.experiment.dialect import dialects
from fusion_bench.methods.fuse import EngineForm, Fusion, RankSum, WeightedFusion

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

    hidden_if_none: ClassVar[frozenset[str]] = frozenset({"default"})
    formula: ClassVar[str] = "Σ w/(k + position)"
    source: ClassVar[str] = "Chroma documentation, hybrid search; chromadb operator.py"

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


CODE = """\
from chromadb import Knn, Rrf, Search

rank = Rrf(
    ranks=[
$[        Knn(query="QUERY", key=$name!r, limit=$window, $(default=$default!r, $)return_rank=True),
$]    ],
    k=$k,
    weights=$weights!r,
    normalize=$normalize!r,
)
# collection = chromadb.CloudClient().get_collection("COLLECTION")
results = collection.search(Search().rank(rank).limit($top_k))
"""


@dialects.register
class Chroma(EngineDialect):
    """Chroma 1.x, search API."""

    name = "chroma"
    title = "Chroma"
    version = "1.3"
    source = "https://docs.trychroma.com/cloud/search-api/hybrid-search"
    methods = (ChromaRRF,)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 16, "min_relevance": DROPPED}  # limit of Knn
    rank_base = 0
    ignores = (
        "Scores are ignored.",
        "Without a default, a document that a list lacks is not returned.",
        "A bonus for top ranks cannot be said.",
    )

    forms = (Form({"search.py": CODE}),)
    notes = (
        "Replace each key by the embedding of its list, and QUERY by its text or vector.",
        "return_rank=True is needed: without it, Rrf adds distances to k.",
    )

    @classmethod
    def convert(cls, draft: Draft) -> Mapping[str, Any]:
        """Sums of reciprocal ranks; missing documents get a very deep position."""
        return {**super().convert(draft), "default": NOWHERE}
