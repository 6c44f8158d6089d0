"""Manticore Search: reciprocal rank fusion of a full-text search and vector searches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fusion_bench.config.parameters import Parameter, integer
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    common_window,
    most_results,
    read_json,
    refuse_unreadable,
    weights_by_source,
    write_json,
)
from fusion_bench.engines.dialects._sums import GREATEST_K, ReciprocalRanks
from fusion_bench.engines.dialects._translation import Draft, name_weights
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import WeightedFusion

FILE = "search.json"
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

    method: str = "rrf"
    rank_constant: Annotated[int, Field(ge=0, le=GREATEST_K)] = 60
    text: str | None = None

    @property
    def constant(self) -> float:
        """``rank_constant``: ranks count from 1."""
        return self.rank_constant

    def space(self, sources: tuple[str, ...]) -> tuple[Parameter, ...]:  # type: ignore[override]
        """The rank constant and the weights."""
        return (integer("rank_constant", 1, GREATEST_K, log=True), *super().space(sources))


@dialects.register
class Manticore(Dialect):
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

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """Sums of reciprocal ranks; the list of role ``keyword`` is the full-text search."""
        draft = Draft(cls, system, roles)
        if len(draft.sources) < 2:
            return draft.refuse("runs: two or more lists are fused")
        fusion: dict[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
        elif (ranks := draft.find_reciprocal_ranks()) is not None:
            texts = [name for name in draft.sources if "keyword" in draft.roles[name]]
            if len(texts) > 1:
                listed = ", ".join(texts)
                return draft.refuse(f"runs: at most one full-text search is fused, not {listed}")
            if TEXT_ALIAS in draft.sources and texts != [TEXT_ALIAS]:
                return draft.refuse(f"runs: no vector search may be called {TEXT_ALIAS!r}")
            fusion = {
                "rank_constant": draft.choose_rank_constant(ranks, 0),
                "weights": name_weights(ranks.weights),
                "text": texts[0] if texts else None,
            }
        else:
            return draft.refuse_fusion()
        return draft.finish(fusion, **draft.choose_windows())

    @classmethod
    def write(cls, system: System) -> Configuration:
        """The body of a search request."""
        check_writable(cls, system)
        weights, window = weights_by_source(system), common_window(system)
        fusion = system.fusion.model_dump()
        text = fusion.get("text")
        if text is not None and text not in system.runs:
            raise ConfigError(f"system {system.name!r}: fusion.text: {text!r} is none of its runs")
        vectors = [name for name in system.runs if name != text]
        request: dict[str, Any] = {"table": "TABLE"}
        if text is not None:
            request["query"] = {"match": {"*": "QUERY"}}
        request["knn"] = [
            {"field": "VECTOR_FIELD", "query_vector": [0.0], "k": window, "name": name}
            for name in vectors
        ]
        named = {TEXT_ALIAS if name == text else name: weights[name] for name in system.runs}
        request["options"] = {
            "fusion_method": fusion["method"],
            "rank_constant": fusion["rank_constant"],
            "window_size": window,
            "fusion_weights": named,
            "max_matches": max(window, most_results(system)),
            **({} if text is None else {"comment": text}),
        }
        request["limit"] = most_results(system)
        return Configuration(
            {FILE: write_json(request)},
            (
                "Send it to POST /search.",
                "Replace the table, each VECTOR_FIELD and its query_vector, and QUERY.",
                "comment, which the query log shows, is the name of the full-text list.",
            ),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from a search request.

        Raises:
            ConfigError: It is none.
        """
        request = read_json(files, FILE)
        with refuse_unreadable(FILE, cls.title):
            options = request["options"]
            text = options.get("comment", "text") if "query" in request else None
            weights = {
                text if alias == TEXT_ALIAS and text is not None else alias: weight
                for alias, weight in options["fusion_weights"].items()
            }
            fusion = {
                "method": options["fusion_method"],
                "rank_constant": options.get("rank_constant", 60),
                "weights": weights,
                "text": text,
            }
            return {
                "runs": list(weights),
                "dialect": cls.name,
                "fusion": fusion,
                "depth": options["window_size"],
                "top_k": request.get("limit", 20),
            }
