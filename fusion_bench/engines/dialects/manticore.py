"""Manticore Search: reciprocal rank fusion of a full-text search and vector searches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fusion_bench.engines.dialects._configuration import Each, Maybe, Slot, Values
from fusion_bench.engines.dialects._dialect import EngineDialect, Form
from fusion_bench.engines.dialects._sums import GREATEST_K, ReciprocalRanks
from fusion_bench.engines.dialects._translation import Draft, ReciprocalRankSum
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import WeightedFusion

#: What the full-text search is called in a request; no vector search may be.
TEXT_ALIAS = "query"


class ManticoreRRF(ReciprocalRanks, WeightedFusion):
    """``rrf``: Σ_s w_s / (rank_constant + rank), ranks from 1.

    Attributes:
        rank_constant: Flattens the difference between neighboring ranks.
        weights: By source name or role; ``fusion_weights``.
        text: Which source is the full-text search; None = all are vector searches.
    """

    hidden_if_none: ClassVar[frozenset[str]] = frozenset({"text"})
    formula: ClassVar[str] = "Σ w/(rank_constant + rank)"
    source: ClassVar[str] = "Manticore Search manual, hybrid search"

    constant_field = "rank_constant"

    method: str = "rrf"
    rank_constant: Annotated[int, Field(ge=0, le=GREATEST_K)] = 60
    text: str | None = None


VECTOR = {"field": "VECTOR_FIELD", "query_vector": [0.0], "k": Slot("window")}
REQUEST = {
    "table": "TABLE",
    "query": Maybe("text", {"match": {"*": "QUERY"}}),
    "knn": Each({**VECTOR, "name": Slot("name")}),
    "options": {
        "fusion_method": Slot("method"),
        "rank_constant": Slot("rank_constant"),
        "window_size": Slot("window"),
        "fusion_weights": Slot("aliases"),
        "max_matches": Slot("most"),
        "comment": Maybe("text"),
    },
    "limit": Slot("top_k"),
}


@dialects.register
class Manticore(EngineDialect):
    """Manticore Search, manual of August 2026."""

    name = "manticore"
    title = "Manticore Search"
    version = "manual of August 2026"
    source = "https://manual.manticoresearch.com/Searching/Hybrid_search"
    methods = (ManticoreRRF,)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 20, "top_k": 20}  # window_size, LIMIT
    ignores = (
        "Scores are ignored.",
        "Of the lists, at most one is a full-text search.",
        "A bonus for top ranks, and a depth of its own for each list, cannot be said.",
    )

    forms = (Form({"search.json": REQUEST}),)
    notes = (
        "Send it to POST /search.",
        "Replace the table, each VECTOR_FIELD and its query_vector, and QUERY.",
        "comment, which the query log shows, is the name of the full-text list.",
    )
    lists = (2, 1000)
    windows: ClassVar[Mapping[str, bool]] = {}

    @classmethod
    def convert_ranks(cls, draft: Draft, ranks: ReciprocalRankSum) -> Mapping[str, Any]:
        """The list of role ``keyword`` is the full-text search."""
        texts = [name for name in draft.sources if "keyword" in draft.roles[name]]
        if len(texts) > 1:
            listed = ", ".join(texts)
            draft.refuse(f"runs: at most one full-text search is fused, not {listed}")
        if TEXT_ALIAS in draft.sources and texts != [TEXT_ALIAS]:
            draft.refuse(f"runs: no vector search may be called {TEXT_ALIAS!r}")
        return {**super().convert_ranks(draft, ranks), "text": texts[0] if texts else None}

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """The vector searches, and the weights by their names in the request."""
        values = super().list_values(system, roles)
        text = values.get("text")
        if text is not None and text not in system.runs:
            raise ConfigError(f"system {system.name!r}: fusion.text: {text!r} is none of its runs")
        aliases = {
            TEXT_ALIAS if each["name"] == text else each["name"]: each["weight"]
            for each in values["sources"]
        }
        vectors = [each for each in values["sources"] if each["name"] != text]
        most = max(values["window"], values["top_k"])
        return {**values, "sources": vectors, "aliases": aliases, "most": most}

    @classmethod
    def make_system(cls, values: Values) -> dict[str, Any]:
        """Every list that has a weight."""
        text = values.get("text")
        sources = [
            {"name": text if name == TEXT_ALIAS and text is not None else name, "weight": weight}
            for name, weight in values["aliases"].items()
        ]
        return super().make_system({**values, "sources": sources})
