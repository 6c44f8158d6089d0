"""Azure AI Search: reciprocal rank fusion of one text query and vector queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    most_results,
    read_json,
    refuse_unreadable,
    unreadable,
    weights_by_source,
    windows_by_source,
    write_json,
)
from fusion_bench.engines.dialects._sums import RankTermSum
from fusion_bench.engines.dialects._translation import Draft
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import Fusion, WeightedFusion
from fusion_bench.methods.fuse.rrf import RRF

FILE = "search.json"
KEYWORD = "keyword"
#: The constant, for ranks from 1: 60 for positions from 0.
CONSTANT = 59


class AzureRRF(RankTermSum, WeightedFusion):
    """``rrf``: Σ_s w_s / (60 + position), positions from 0; the text query weighs 1.

    Attributes:
        weights: Of the vector queries, by source name or role.
        text: Which source is the text query; None = the only one of role ``keyword``.
    """

    formula: ClassVar[str] = "Σ w/(60 + position)"
    source: ClassVar[str] = "Azure AI Search documentation, hybrid search scoring"

    method: str = "rrf"
    text: str | None = None

    def find_text(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> str | None:
        """The source that is the text query; None = all are vector queries.

        Raises:
            ConfigError: There is more than one.
        """
        if self.text is not None:
            return self.text if self.text in sources else None
        texts = [name for name, role in zip(sources, roles, strict=True) if KEYWORD in role]
        if len(texts) > 1:
            raise ConfigError(
                f"one text query is fused with vector queries, and {', '.join(texts)} all have "
                f"the role {KEYWORD!r}: name the text query by 'text'"
            )
        return texts[0] if texts else None

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): the weights; that of the text query is 1.

        Raises:
            ConfigError: Another one is given to it, or the weights do not fit the sources.
        """
        weights = super().source_weights(sources, roles)
        text = self.find_text(sources, roles)
        if text is not None and weights[sources.index(text)] not in {0.0, 1.0}:
            raise ConfigError(
                f"weights: the text query {text!r} weighs 1 in Azure AI Search; scale the others"
            )
        return weights

    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:
        """(n,): the term of a list of this weight."""
        return np.asarray(weight / (ranks + CONSTANT))

    def equivalent(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> Fusion:
        """Our ``rrf`` of k = 59."""
        weights = self.source_weights(sources, roles).tolist()
        return RRF(k=CONSTANT, weights=dict(zip(sources, weights, strict=True)))


@dialects.register
class AzureAISearch(Dialect):
    """Azure AI Search, REST API 2024-07-01."""

    name = "azure"
    title = "Azure AI Search"
    version = "2024-07-01"
    source = "https://learn.microsoft.com/en-us/azure/search/hybrid-search-ranking"
    methods = (AzureRRF,)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 50, "top_k": 50}  # k, top
    rank_base = 0
    ignores = (
        "The constant cannot be set.",
        "The text query has no weight: the weights of vector queries are relative to its 1.",
        "The semantic ranker replaces the order, so no blend with it can be said.",
    )

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """``rrf`` for sums of reciprocal ranks."""
        draft = Draft(cls, system, roles)
        if len(draft.sources) < 2:
            return draft.refuse("runs: two or more lists are fused")
        texts = [name for name in draft.sources if KEYWORD in draft.roles[name]]
        fusion: dict[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
            if isinstance(system.fusion, AzureRRF):
                fusion["text"] = system.fusion.find_text(draft.sources, [*draft.roles.values()])
        elif (ranks := draft.find_reciprocal_ranks()) is None:
            return draft.refuse_fusion()
        elif len(texts) > 1:
            return draft.refuse(f"runs: one text query is fused, given {', '.join(texts)}")
        else:
            if set(ranks.k.values()) != {CONSTANT}:
                draft.lose(f"k: the constant is fixed, our k = {CONSTANT}")
            unit = draft.weights[texts[0] if texts else draft.sources[0]]
            weights = {name: weight / unit for name, weight in draft.weights.items()}
            fusion = {"weights": weights if set(weights.values()) != {1.0} else {}}
            fusion["text"] = texts[0] if texts else None
        return draft.finish(fusion, **draft.choose_windows(by_source=True))

    @classmethod
    def write(cls, system: System) -> Configuration:
        """The body of a search request."""
        check_writable(cls, system)
        weights, windows = weights_by_source(system), windows_by_source(system)
        text = system.fusion.model_dump()["text"]
        request: dict[str, Any] = {}
        if text is not None:
            request = {"search": "QUERY", "searchFields": text}
        request["vectorQueries"] = [
            {"kind": "text", "text": "QUERY", "fields": name, "k": windows[name], "weight": weight}
            for name, weight in weights.items()
            if name != text
        ]
        if text is not None:
            request["hybridSearch"] = {"maxTextRecallSize": windows[text]}
        request["top"] = most_results(system)
        return Configuration(
            {FILE: write_json(request)},
            (
                "Send it to POST /indexes/INDEX/docs/search.",
                "Replace searchFields and each fields by your fields, QUERY by the query.",
                "hybridSearch needs a preview version of the API; 1000 documents without it.",
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
            text = request.get("searchFields")
            depth = {entry["fields"]: entry.get("k", 50) for entry in request["vectorQueries"]}
            weights = {e["fields"]: e.get("weight", 1.0) for e in request["vectorQueries"]}
            if text is not None:
                recall = request.get("hybridSearch", {}).get("maxTextRecallSize", 1000)
                depth = {text: recall, **depth}
            fusion = {"weights": {n: w for n, w in weights.items() if w != 1}, "text": text}
            top = request.get("top", 50)
        if not depth:
            raise unreadable(FILE, cls.title, "no query")
        system = {"runs": list(depth), "dialect": cls.name, "fusion": fusion}
        return {**system, "depth": depth, "top_k": top}
