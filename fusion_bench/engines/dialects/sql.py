"""Statements of SQL: Azure Cosmos DB, PostgreSQL with pgvector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.engines.dialects._dialect import EngineDialect, Form, Values, read_template
from fusion_bench.engines.dialects._sums import (
    GREATEST_K,
    RankConstant,
    ReciprocalRanks,
    ScaledScoreSum,
    TermSum,
)
from fusion_bench.engines.dialects._translation import Draft, ReciprocalRankSum
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import WeightedFusion
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.normalize.linear import MinMax

SignedWeight = Annotated[float, Field(allow_inf_nan=False)]


class CosmosRRF(RankConstant, TermSum):
    """``rrf``: Σ_s |w_s| / (60 + rank), dense ranks from 1; a negative weight reverses the list.

    Documents of equal scores share a rank, and the next rank is one more. A document that a list
    lacks is taken to score below all of its documents; Cosmos DB scores it itself.

    Attributes:
        weights: By source name or role; a source that is not named weighs 1.
    """

    formula = "Σ |w|/(60 + dense rank)"
    source = "azure-cosmos-dotnet-v3 on GitHub, pull request 5064"

    constant_field = ""
    fixed_constant = 60

    method: str = "rrf"
    weights: dict[str, SignedWeight] = Field(default_factory=dict)

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): the weights without their signs.

        Raises:
            ConfigError: They do not fit the sources.
        """
        sizes = {key: abs(weight) for key, weight in self.weights.items()}
        return RRF(weights=sizes).source_weights(sources, roles)

    def is_reversed(self, source: str, role: frozenset[str]) -> bool:
        """Whether the weight of the source is negative."""
        return any(w < 0 for key, w in self.weights.items() if key == source or key in role)

    def source_terms(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the term of the dense rank; of one more than the last, where there is none."""
        weights = self.source_weights(runs.sources, runs.roles)
        pairs = zip(runs.sources, runs.roles, strict=True)
        signs = [-1.0 if self.is_reversed(name, role) else 1.0 for name, role in pairs]
        ranks = np.array(
            [
                _dense_ranks(sign * np.where(np.isnan(scores), -np.inf, scores), runs.query_index)
                for sign, scores in zip(signs, runs.scores, strict=True)
            ]
        ).reshape(runs.scores.shape)
        return np.asarray(weights[:, None] / (self.fixed_constant + ranks))


def _dense_ranks(scores: FloatArray, query: IntArray) -> IntArray:
    """(N,): 1 for the greatest score of each query, one more for each lesser one."""
    order = np.lexsort((-scores, query))
    is_new_query = np.diff(query[order], prepend=-1) != 0
    is_less = np.r_[True, scores[order][1:] != scores[order][:-1]] | is_new_query
    count = np.cumsum(is_less)
    first = np.maximum.accumulate(np.where(is_new_query, count, 0))
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[order] = count - first + 1
    return ranks


@dialects.register
class CosmosDB(EngineDialect):
    """Azure Cosmos DB for NoSQL, SDKs of May 2025 and later."""

    name = "cosmos"
    title = "Azure Cosmos DB"
    version = "SDKs since May 2025"
    checked = "2026-11-22"
    source = "https://learn.microsoft.com/en-us/cosmos-db/query/rrf"
    methods = (CosmosRRF,)
    defaults: ClassVar[Mapping[str, Any]] = {"top_k": 10}  # TOP
    precision = "float64"
    ignores = (
        "The constant cannot be set.",
        "How many documents each function returns cannot be set.",
        "A bonus for top ranks cannot be said.",
    )

    forms = (Form({"query.sql": read_template("cosmos.sql")}),)
    notes = (
        'Replace c["NAME"] by the property of each list, and FullTextScore by '
        "VectorDistance(c.vector, [...]) for a vector search.",
    )
    lists = (2, 1000)
    lists_rule = "two or more functions are fused"
    constant_rule = f"the constant is fixed, {CosmosRRF.fixed_constant}"

    @classmethod
    def keep(cls, draft: Draft) -> Mapping[str, Any]:
        """Keep the fusion, with the signs of the weights."""
        given = draft.system.fusion
        if not isinstance(given, CosmosRRF):
            return super().keep(draft)
        signs = {n: -1 if given.is_reversed(n, draft.roles[n]) else 1 for n in draft.sources}
        return {"weights": {name: signs[name] * size for name, size in draft.weights.items()}}

    @classmethod
    def convert_ranks(cls, draft: Draft, ranks: ReciprocalRankSum) -> Mapping[str, Any]:
        """Never exact, for no document lacks a score."""
        draft.lose("missing: every function scores every document, and equal scores share a rank")
        return super().convert_ranks(draft, ranks)

    @classmethod
    def finish(cls, draft: Draft, fusion: Mapping[str, Any]) -> Translation:
        """Finish the translation, without a window."""
        if draft.system.depth is not None:
            draft.lose("depth: it is not part of a query")
        return draft.finish(fusion, top_k=draft.system.top_k)

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Values of a system, with signed weights if there are any."""
        if system.depth is not None:
            raise ConfigError(f"system {system.name!r}: depth is not part of a query: leave it out")
        values, fusion = super().list_values(system, roles), system.fusion
        signed = [
            -each["weight"] if fusion.is_reversed(each["name"], frozenset()) else each["weight"]
            for each in values["sources"]
            if isinstance(fusion, CosmosRRF) and fusion.weights
        ]
        return {**values, "top_k": system.top_k, "signed": signed}


PGVECTOR_FILE = "search.sql"


class PgvectorRRF(ReciprocalRanks, WeightedFusion):
    """``rrf``: Σ_s w_s / (k + rank), ranks from 1.

    Attributes:
        k: Flattens the difference between neighboring ranks.
    """

    formula = "Σ w/(k + rank)"
    source = "pgvector-python, examples/hybrid_search/rrf.py"
    ties = "trec"  # the statement says so

    method: str = "rrf"
    k: Annotated[int, Field(ge=0, le=GREATEST_K)] = 60


class PgvectorConvex(ScaledScoreSum, WeightedFusion):
    """``convex``: Σ_s w_s·(x − min)/(max − min); equal scores of a list count 1."""

    formula = "Σ w·(x − min)/(max − min)"
    source = "Bruch, Gai, Ingber 2023, as SQL"
    ties = "trec"

    scale = our_scale = MinMax()

    method: str = "convex"


@dialects.register
class Pgvector(EngineDialect):
    """SQL for PostgreSQL with pgvector 0.8."""

    name = "pgvector"
    title = "pgvector"
    version = "0.8"
    checked = "2026-11-22"
    source = "https://github.com/pgvector/pgvector-python/blob/master/examples/hybrid_search/rrf.py"
    methods = (PgvectorRRF, PgvectorConvex)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 20, "top_k": 5}  # LIMIT of the example
    precision = "float64"
    ignores = ("A bonus for top ranks is not written.",)

    forms = (
        Form({PGVECTOR_FILE: read_template("pgvector_rrf.sql")}, {"method": "rrf"}),
        Form({PGVECTOR_FILE: read_template("pgvector_convex.sql")}, {"method": "convex"}),
    )
    notes = (
        "Make a view or a subquery with an alias of each LIST_n, with columns id and score, the "
        "greater the better: (SELECT id, 1 - (embedding <=> '[…]') AS score FROM documents) for a "
        "vector search, (SELECT id, ts_rank_cd(textsearch, query) AS score FROM documents, "
        "plainto_tsquery('QUERY') query WHERE textsearch @@ query) for a full-text search.",
        "ORDER BY score DESC uses no vector index: order by embedding <=> '[…]' and LIMIT inside "
        "the subquery.",
    )
    score_methods: ClassVar[Mapping[str, str]] = {"min_max": "convex"}
    equal_scores = 1
    most_chunks = 1000
    collapses_window = False

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Names that SQL can hold."""
        for name in system.runs:
            if "\x00" in name:
                raise ConfigError(
                    f"system {system.name!r}: runs: {name!r} cannot be written in SQL"
                )
        return super().list_values(system, roles)
