"""Search servers whose request fuses: Azure AI Search, Manticore Search, Vespa."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fusion_bench.config.models import Weight
from fusion_bench.config.parameters import Parameter
from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._dialect import (
    Each,
    EngineDialect,
    Form,
    Maybe,
    Slot,
    Values,
    read_template,
)
from fusion_bench.engines.dialects._sums import GREATEST_K, CanonicalRRF, ReciprocalRanks
from fusion_bench.engines.dialects._translation import (
    CanonicalFusion,
    Draft,
    ReciprocalRankSum,
    name_weights,
)
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import WeightedFusion
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.fuse.weighted_score import WeightedScore
from fusion_bench.methods.normalize.linear import MinMax

AZURE_FILE = "search.json"
KEYWORD = "keyword"


class AzureRRF(ReciprocalRanks, WeightedFusion):
    """``rrf``: Σ_s w_s / (60 + position), positions from 0; the text query weighs 1.

    Attributes:
        weights: Of the vector queries, by source name or role.
        text: Which source is the text query; None = the only one of role ``keyword``.
    """

    formula = "Σ w/(60 + position)"
    source = "Azure AI Search documentation, hybrid search scoring"

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


AZURE_VECTOR = {"kind": "text", "text": "QUERY", "fields": Slot("name")}
AZURE_REQUEST = {
    "search": Maybe("text", "QUERY"),
    "searchFields": Maybe("text"),
    "vectorQueries": Each({**AZURE_VECTOR, "k": Slot("window"), "weight": Slot("weight")}),
    "hybridSearch": Maybe("text", {"maxTextRecallSize": Slot("text_window")}),
    "top": Slot("top_k"),
}


@dialects.register
class AzureAISearch(EngineDialect):
    """Azure AI Search, REST API 2024-07-01."""

    name = "azure"
    title = "Azure AI Search"
    version = "2024-07-01"
    checked = "2026-11-23"
    source = "https://learn.microsoft.com/en-us/azure/search/hybrid-search-ranking"
    methods = (AzureRRF,)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 50, "top_k": 50}  # k, top
    rank_base = 0
    ignores = (
        "The constant cannot be set.",
        "The text query has no weight: the weights of vector queries are relative to its 1.",
        "The semantic ranker replaces the order, so no blend with it can be said.",
    )

    forms = (Form({AZURE_FILE: AZURE_REQUEST}),)
    notes = (
        "Send it to POST /indexes/INDEX/docs/search.",
        "Replace searchFields and each fields by your fields, QUERY by the query.",
        "hybridSearch needs a preview version of the API; 1000 documents without it.",
    )
    lists = (2, 1000)
    constant_rule = f"the constant is fixed, our k = {AzureRRF.fixed_constant}"

    @classmethod
    def keep(cls, draft: Draft) -> Mapping[str, Any]:
        """Keep the fusion, with the name of the text query."""
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


#: What the full-text search is called in a request; no vector search may be.
TEXT_ALIAS = "query"


class ManticoreRRF(ReciprocalRanks, WeightedFusion):
    """``rrf``: Σ_s w_s / (rank_constant + rank), ranks from 1.

    Attributes:
        rank_constant: Flattens the difference between neighboring ranks.
        weights: By source name or role; ``fusion_weights``.
        text: Which source is the full-text search; None = all are vector searches.
    """

    hidden_if_none = frozenset({"text"})
    formula = "Σ w/(rank_constant + rank)"
    source = "Manticore Search manual, hybrid search"

    constant_field = "rank_constant"

    method: str = "rrf"
    rank_constant: Annotated[int, Field(ge=0, le=GREATEST_K)] = 60
    text: str | None = None


MANTICORE_VECTOR = {"field": "VECTOR_FIELD", "query_vector": [0.0], "k": Slot("window")}
MANTICORE_REQUEST = {
    "table": "TABLE",
    "query": Maybe("text", {"match": {"*": "QUERY"}}),
    "knn": Each({**MANTICORE_VECTOR, "name": Slot("name")}),
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
    checked = "2026-11-22"
    source = "https://manual.manticoresearch.com/Searching/Hybrid_search"
    methods = (ManticoreRRF,)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 20, "top_k": 20}  # window_size, LIMIT
    ignores = (
        "Scores are ignored.",
        "Of the lists, at most one is a full-text search.",
        "A bonus for top ranks, and a depth of its own for each list, cannot be said.",
    )

    forms = (Form({"search.json": MANTICORE_REQUEST}),)
    notes = (
        "Send it to POST /search.",
        "Replace the table, each VECTOR_FIELD and its query_vector, and QUERY.",
        "comment, which the query log shows, is the name of the full-text list.",
    )
    lists = (2, 1000)
    searches_by_role = True
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
            raise ConfigError(f"system {system.name!r}: fusion.text: it has no run {text!r}")
        aliases = {
            TEXT_ALIAS if each["name"] == text else each["name"]: each["weight"]
            for each in values["sources"]
        }
        vectors = [each for each in values["sources"] if each["name"] != text]
        most = max(values["window"], values["top_k"])
        return {**values, "sources": vectors, "aliases": aliases, "most": most}


PROFILE, QUERY = "rank-profile.sd", "query.json"


class VespaReciprocalRank(CanonicalRRF):
    """``reciprocal_rank``: Σ_s w_s / (k + rank), ranks from 1 over all hits of the global phase.

    Attributes:
        k: Flattens the difference between neighboring ranks.
        weights: By source name or role: factors in the expression.
    """

    formula = "Σ w·reciprocal_rank(feature, k)"
    source = "Vespa documentation, phased ranking"

    method: str = "reciprocal_rank"
    k: Annotated[float, Field(ge=0, le=1000)] = 60
    weights: dict[str, Weight] = Field(default_factory=dict)


class VespaNormalizeLinear(CanonicalFusion):
    """``normalize_linear``: Σ_s w_s·(x − min) / (max − min); 0.5 for equal scores.

    The bench divides the sum by the sum of the weights, which changes no order.

    Attributes:
        weights: By source name or role: factors in the expression.
    """

    formula = "Σ w·normalize_linear(feature)"
    source = "Vespa documentation, phased ranking; LinearNormalizer.java"

    method: str = "normalize_linear"
    weights: dict[str, Weight] = Field(default_factory=dict)

    @property
    def canonical(self) -> WeightedScore:
        """Our weighted mean, where a list without the document counts 0."""
        return WeightedScore(normalize=MinMax(constant=0.5), missing="zero", weights=self.weights)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The weights."""
        return RRF(weights=self.weights).space(sources)[1:]


@dialects.register
class Vespa(EngineDialect):
    """Vespa 8."""

    name = "vespa"
    title = "Vespa"
    version = "8"
    checked = "2026-11-23"
    source = "https://docs.vespa.ai/en/ranking/phased-ranking.html"
    methods = (VespaReciprocalRank, VespaNormalizeLinear)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 100, "top_k": 10}  # rerank-count, hits
    precision = "float64"
    ignores = (
        "No hit lacks a feature: each has a rank and a score for every list.",
        "A depth of its own for each list cannot be said: rerank-count is one for all.",
    )

    forms = (
        Form(
            {
                PROFILE: read_template("vespa.sd"),
                QUERY: {"yql": "YQL", "ranking": "fused", "hits": Slot("top_k")},
            }
        ),
    )
    notes = (
        f"Put {PROFILE} into the schema; add the inputs and the first phase that it needs.",
        "Replace each FEATURE by the rank feature of its list, such as bm25(text) or "
        "closeness(field, embedding), and YQL by the query.",
    )
    minimum_score = "rank-score-drop-limit of global-phase (since February 2025)"
    lists = (2, 1000)
    lists_rule = "two or more features are fused"
    windows: ClassVar[Mapping[str, bool]] = {"cut_to_window": True}
    score_methods: ClassVar[Mapping[str, str]] = {"min_max": "normalize_linear"}
    collapse_rule = "groups have scores from before the global phase"

    @classmethod
    def convert(cls, draft: Draft) -> Mapping[str, Any]:
        """Never exact: Vespa ranks every hit by every feature."""
        draft.lose("missing: every hit has a rank and a score for every feature")
        return super().convert(draft)

    @classmethod
    def convert_ranks(cls, draft: Draft, ranks: ReciprocalRankSum) -> Mapping[str, Any]:
        """``reciprocal_rank``, whose constant need not be whole."""
        constants = set(ranks.k.values())
        constant = sum(constants) / len(constants)
        if len(constants) > 1:
            draft.lose(f"k: one for all lists, {constant:g}")
        return {"k": constant, "weights": name_weights(ranks.weights)}

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """No more than a window."""
        values = super().list_values(system, roles)
        return {**values, "top_k": min(values["top_k"], values["window"])}
