"""Chroma: ``Rrf`` of the search API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, integer
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    find_call,
    find_calls,
    most_results,
    parse_python,
    refuse_unreadable,
    weights_by_source,
    windows_by_source,
)
from fusion_bench.engines.dialects._sums import GREATEST_K, ReciprocalRanks
from fusion_bench.engines.dialects._translation import Draft, name_weights
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import EngineForm, Fusion, RankSum, WeightedFusion

FILE = "search.py"
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

    method: str = "rrf"
    k: Annotated[int, Field(ge=1, le=GREATEST_K + 1)] = 60
    normalize: bool = False
    default: Annotated[float, Field(ge=0)] | None = None

    @property
    def constant(self) -> float:
        """``k`` − 1, for ranks that count from 1."""
        return self.k - 1

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

    def equivalent(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> Fusion | None:
        """Our ``rrf``, where a missing document adds nothing that 32 bits can tell."""
        is_negligible = self.default is not None and self.default >= NOWHERE
        return super().equivalent(sources, roles) if is_negligible else None

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """K and the weights."""
        return (integer("k", 1, GREATEST_K, log=True), *super().space(sources))


@dialects.register
class Chroma(Dialect):
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

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """Sums of reciprocal ranks; missing documents get a very deep position."""
        draft = Draft(cls, system, roles)
        fusion: Mapping[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
        elif (ranks := draft.find_reciprocal_ranks()) is not None:
            fusion = {
                "k": draft.choose_rank_constant(ranks, 1, base=0),
                "weights": name_weights(ranks.weights),
                "default": NOWHERE,
            }
        else:
            return draft.refuse_fusion()
        return draft.finish(fusion, **draft.choose_windows(by_source=True))

    @classmethod
    def write(cls, system: System) -> Configuration:
        """Python for the client."""
        check_writable(cls, system)
        fusion, windows = system.fusion.model_dump(), windows_by_source(system)
        missing = fusion.get("default")
        default = "" if missing is None else f"default={missing!r}, "
        searches = "\n".join(
            f'        Knn(query="QUERY", key={name!r}, limit={limit}, {default}return_rank=True),'
            for name, limit in windows.items()
        )
        code = f"""\
from chromadb import Knn, Rrf, Search

rank = Rrf(
    ranks=[
{searches}
    ],
    k={fusion["k"]},
    weights={[*weights_by_source(system).values()]!r},
    normalize={fusion["normalize"]!r},
)
# collection = chromadb.CloudClient().get_collection("COLLECTION")
results = collection.search(Search().rank(rank).limit({most_results(system)}))
"""
        return Configuration(
            {FILE: code},
            (
                "Replace each key by the embedding of its list, and QUERY by its text or vector.",
                "return_rank=True is needed: without it, Rrf adds distances to k.",
            ),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from Python for the client.

        Raises:
            ConfigError: It is none.
        """
        tree = parse_python(files, FILE)
        with refuse_unreadable(FILE, cls.title):
            _, rrf = find_call(tree, "Rrf")
            searches = {call["key"]: call for _, call in find_calls(tree, "Knn")}
            fusion: dict[str, Any] = {
                "k": rrf.get("k", 60),
                "normalize": rrf.get("normalize", False),
                "weights": dict(zip(searches, rrf["weights"], strict=True)),
            }
            missing = {call.get("default") for call in searches.values()}
            if missing != {None}:
                (fusion["default"],) = missing
            depth = {name: call.get("limit", 16) for name, call in searches.items()}
            limits = set(depth.values())
            return {
                "runs": list(searches),
                "dialect": cls.name,
                "fusion": fusion,
                "depth": limits.pop() if len(limits) == 1 else depth,
                "top_k": find_call(tree, "limit")[1]["0"],
            }
