"""LangChain: the weighted reciprocal rank fusion of ``EnsembleRetriever``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._dialect import EngineDialect, Form
from fusion_bench.engines.dialects._sums import GREATEST_K, ReciprocalRanks
from fusion_bench.experiment.dialect import dialects
from fusion_bench.methods.fuse import WeightedFusion


class WeightedReciprocalRank(ReciprocalRanks, WeightedFusion):
    """``weighted_reciprocal_rank``: Σ_s w_s / (rank + c), ranks from 1.

    Attributes:
        c: Flattens the difference between neighboring ranks.
        weights: By source name or role; none = 1/n for each of n lists.
    """

    formula: ClassVar[str] = "Σ w/(rank + c)"
    source: ClassVar[str] = "LangChain, langchain_classic/retrievers/ensemble.py"

    constant_field = "c"

    method: str = "weighted_reciprocal_rank"
    c: Annotated[int, Field(ge=0, le=GREATEST_K)] = 60

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights by name or role; equal ones where there are none."""
        weights = super().source_weights(sources, roles)
        return weights if self.weights else np.full(len(sources), 1 / len(sources))


CODE = """\
from langchain_classic.retrievers import EnsembleRetriever

# List -> how many documents are fetched.
WINDOWS = $windows!r
TOP_K = $top_k


def make_retriever(name: str, k: int):
    raise NotImplementedError("return the retriever of this list; it returns k documents")


retriever = EnsembleRetriever(
    retrievers=[make_retriever(name, k) for name, k in WINDOWS.items()],
    weights=$weights!r,
    c=$c,
    id_key="id",
)
documents = retriever.invoke("QUERY")[:TOP_K]
"""


@dialects.register
class LangChain(EngineDialect):
    """LangChain 1.0, package langchain-classic."""

    name = "langchain"
    title = "LangChain"
    version = "1.0"
    source = (
        "https://reference.langchain.com/python/langchain_classic/retrievers/#langchain_classic"
        ".retrievers.EnsembleRetriever"
    )
    methods = (WeightedReciprocalRank,)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 4}  # k of the usual retrievers
    precision = "float64"
    ignores = (
        "Scores are ignored; the fused score is not returned.",
        "A document that stands twice in one list is counted twice.",
        "A bonus for top ranks cannot be said.",
    )

    forms = (Form({"retriever.py": CODE}),)
    notes = (
        'Fill in make_retriever, for example by VECTOR_STORE.as_retriever(search_kwargs={"k": k}).',
        "id_key names the metadata that identifies a document; without it, the text does.",
        "Before 1.0, import from langchain.retrievers.",
    )
