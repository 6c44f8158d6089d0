"""Azure AI Search: reciprocal rank fusion of one text query and vector queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._configuration import Each, Maybe, Slot, Values
from fusion_bench.engines.dialects._dialect import EngineDialect, Form
from fusion_bench.engines.dialects._sums import ReciprocalRanks
from fusion_bench.engines.dialects._translation import Draft, ReciprocalRankSum
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import WeightedFusion

FILE = "search.json"
KEYWORD = "keyword"


class AzureRRF(ReciprocalRanks, WeightedFusion):
    """``rrf``: Σ_s w_s / (60 + position), positions from 0; the text query weighs 1.

    Attributes:
        weights: Of the vector queries, by source name or role.
        text: Which source is the text query; None = the only one of role ``keyword``.
    """

    formula: ClassVar[str] = "Σ w/(60 + position)"
    source: ClassVar[str] = "Azure AI Search documentation, hybrid search scoring"

    constant_field = ""
    fixed_constant = 59

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


VECTOR = {"kind": "text", "text": "QUERY", "fields": Slot("name")}
REQUEST = {
    "search": Maybe("text", "QUERY"),
    "searchFields": Maybe("text"),
    "vectorQueries": Each({**VECTOR, "k": Slot("window"), "weight": Slot("weight")}),
    "hybridSearch": Maybe("text", {"maxTextRecallSize": Slot("text_window")}),
    "top": Slot("top_k"),
}


@dialects.register
class AzureAISearch(EngineDialect):
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

    forms = (Form({FILE: REQUEST}),)
    notes = (
        "Send it to POST /indexes/INDEX/docs/search.",
        "Replace searchFields and each fields by your fields, QUERY by the query.",
        "hybridSearch needs a preview version of the API; 1000 documents without it.",
    )
    lists = (2, 1000)
    fixed_constant = f"the constant is fixed, our k = {AzureRRF.fixed_constant}"

    @classmethod
    def keep(cls, draft: Draft) -> Mapping[str, Any]:
        """With the name of the text query."""
        fusion, given = super().keep(draft), draft.system.fusion
        if isinstance(given, AzureRRF):
            fusion = {**fusion, "text": given.find_text(draft.sources, [*draft.roles.values()])}
        return fusion

    @classmethod
    def convert_ranks(cls, draft: Draft, ranks: ReciprocalRankSum) -> Mapping[str, Any]:
        """Weights relative to that of the text query."""
        texts = [name for name in draft.sources if KEYWORD in draft.roles[name]]
        if len(texts) > 1:
            draft.refuse(f"runs: one text query is fused, given {', '.join(texts)}")
        fusion = super().convert_ranks(draft, ranks)
        unit = draft.weights[texts[0] if texts else draft.sources[0]]
        weights = {name: weight / unit for name, weight in draft.weights.items()}
        is_plain = set(weights.values()) == {1.0}
        text = texts[0] if texts else None
        return {**fusion, "weights": {} if is_plain else weights, "text": text}

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """The vector queries without the text query."""
        values = super().list_values(system, roles)
        vectors = [each for each in values["sources"] if each["name"] != values["text"]]
        return {**values, "sources": vectors, "text_window": values["windows"].get(values["text"])}

    @classmethod
    def make_system(cls, values: Values) -> dict[str, Any]:
        """The text query first."""
        if text := values.get("text"):
            window = values["text_window"]
            values["sources"].insert(0, {"name": text, "weight": 1.0, "window": window})
        return super().make_system(values)
