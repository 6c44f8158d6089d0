"""LangChain: the weighted reciprocal rank fusion of ``EnsembleRetriever``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, integer
from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    find_call,
    parse_python,
    read_windows,
    refuse_unreadable,
    weights_by_source,
    write_windows,
)
from fusion_bench.engines.dialects._sums import GREATEST_K, ReciprocalRanks
from fusion_bench.engines.dialects._translation import Draft, name_weights
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import WeightedFusion

FILE = "retriever.py"


class WeightedReciprocalRank(ReciprocalRanks, WeightedFusion):
    """``weighted_reciprocal_rank``: Σ_s w_s / (rank + c), ranks from 1.

    Attributes:
        c: Flattens the difference between neighboring ranks.
        weights: By source name or role; none = 1/n for each of n lists.
    """

    formula: ClassVar[str] = "Σ w/(rank + c)"
    source: ClassVar[str] = "LangChain, langchain_classic/retrievers/ensemble.py"

    method: str = "weighted_reciprocal_rank"
    c: Annotated[int, Field(ge=0, le=GREATEST_K)] = 60

    @property
    def constant(self) -> float:
        """``c``: ranks count from 1."""
        return self.c

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights by name or role; equal ones where there are none."""
        weights = super().source_weights(sources, roles)
        return weights if self.weights else np.full(len(sources), 1 / len(sources))

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """C and the weights."""
        return (integer("c", 1, GREATEST_K, log=True), *super().space(sources))


@dialects.register
class LangChain(Dialect):
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

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """Sums of reciprocal ranks."""
        draft = Draft(cls, system, roles)
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
        elif (ranks := draft.find_reciprocal_ranks()) is not None:
            constant = draft.choose_rank_constant(ranks, 0)
            fusion = {"c": constant, "weights": name_weights(ranks.weights)}
        else:
            return draft.refuse_fusion()
        return draft.finish(fusion, **draft.choose_windows(by_source=True))

    @classmethod
    def write(cls, system: System) -> Configuration:
        """Python that builds the retriever."""
        check_writable(cls, system)
        weights = [*weights_by_source(system).values()]
        code = f"""\
from langchain_classic.retrievers import EnsembleRetriever

{write_windows(system)}

def make_retriever(name: str, k: int):
    raise NotImplementedError("return the retriever of this list; it returns k documents")


retriever = EnsembleRetriever(
    retrievers=[make_retriever(name, k) for name, k in WINDOWS.items()],
    weights={weights!r},
    c={system.fusion.model_dump()["c"]},
    id_key="id",
)
documents = retriever.invoke("QUERY")[:TOP_K]
"""
        return Configuration(
            {FILE: code},
            (
                "Fill in make_retriever, for example by VECTOR_STORE.as_retriever(search_kwargs="
                '{"k": k}).',
                "id_key names the metadata that identifies a document; without it, the text does.",
                "Before 1.0, import from langchain.retrievers.",
            ),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from Python that builds the retriever.

        Raises:
            ConfigError: It is none.
        """
        tree = parse_python(files, FILE)
        with refuse_unreadable(FILE, cls.title):
            windows = read_windows(tree)
            _, arguments = find_call(tree, "EnsembleRetriever")
            fusion = {"c": arguments.get("c", 60)}
            if arguments.get("weights"):
                fusion["weights"] = dict(zip(windows["runs"], arguments["weights"], strict=True))
        return {"dialect": cls.name, "fusion": fusion, **windows}
