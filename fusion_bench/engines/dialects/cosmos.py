"""Azure Cosmos DB for NoSQL: the ``RRF`` function of ``ORDER BY RANK``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    read_file,
    unreadable,
    weights_by_source,
)
from fusion_bench.engines.dialects._sums import TermSum
from fusion_bench.engines.dialects._translation import Draft, name_weights
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import GREATEST_WEIGHT
from fusion_bench.methods.fuse.rrf import RRF

FILE = "query.sql"
CONSTANT = 60
SignedWeight = Annotated[float, Field(allow_inf_nan=False)]


class CosmosRRF(TermSum):
    """``rrf``: Σ_s |w_s| / (60 + rank), dense ranks from 1; a negative weight reverses the list.

    Documents of equal scores share a rank, and the next rank is one more. A document that a list
    lacks is taken to score below all of its documents; Cosmos DB scores it itself.

    Attributes:
        weights: By source name or role; a source that is not named weighs 1.
    """

    formula: ClassVar[str] = "Σ |w|/(60 + dense rank)"
    source: ClassVar[str] = "azure-cosmos-dotnet-v3 on GitHub, pull request 5064"

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
        return np.asarray(weights[:, None] / (CONSTANT + ranks))

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The weights, none of them negative."""
        if len(sources) == 1:
            return ()
        return tuple(real(f"weights.{name}", 0.0, GREATEST_WEIGHT) for name in sources)


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
class CosmosDB(Dialect):
    """Azure Cosmos DB for NoSQL, SDKs of May 2025 and later."""

    name = "cosmos"
    title = "Azure Cosmos DB"
    version = "SDKs since May 2025"
    source = "https://learn.microsoft.com/en-us/cosmos-db/query/rrf"
    methods = (CosmosRRF,)
    defaults: ClassVar[Mapping[str, Any]] = {"top_k": 10}  # TOP
    precision = "float64"
    ignores = (
        "The constant cannot be set.",
        "How many documents each function returns cannot be set.",
        "A bonus for top ranks cannot be said.",
    )

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """``RRF`` for sums of reciprocal ranks: never exact, for no document lacks a score."""
        draft = Draft(cls, system, roles)
        if len(draft.sources) < 2:
            return draft.refuse("runs: two or more functions are fused")
        fusion: dict[str, Any]
        if isinstance(reversible := system.fusion, CosmosRRF):
            signs = {n: -1 if reversible.is_reversed(n, roles[n]) else 1 for n in draft.sources}
            fusion = {"weights": {n: signs[n] * weight for n, weight in draft.weights.items()}}
        elif (ranks := draft.find_reciprocal_ranks()) is not None:
            draft.lose(
                "missing: every function scores every document, and equal scores share a rank"
            )
            if set(ranks.k.values()) != {CONSTANT}:
                draft.lose(f"k: the constant is fixed, {CONSTANT}")
            fusion = {"weights": name_weights(ranks.weights)}
        else:
            return draft.refuse_fusion()
        if draft.system.depth is not None:
            draft.lose("depth: it is not part of a query")
        return draft.finish(fusion, top_k=system.top_k)

    @classmethod
    def write(cls, system: System) -> Configuration:
        """The query."""
        check_writable(cls, system)
        if system.depth is not None:
            raise ConfigError(f"system {system.name!r}: depth is not part of a query: leave it out")
        sizes, fusion = weights_by_source(system), system.fusion
        functions = [f'    FullTextScore(c[{json.dumps(name)}], "QUERY")' for name in system.runs]
        if isinstance(fusion, CosmosRRF) and fusion.weights:
            signed = [
                -size if fusion.is_reversed(name, frozenset()) else size
                for name, size in sizes.items()
            ]
            functions.append(f"    {json.dumps(signed)}")
        top = "" if system.top_k is None else f"TOP {system.top_k} "
        listed = ",\n".join(functions)
        return Configuration(
            {FILE: f"SELECT {top}*\nFROM c\nORDER BY RANK RRF(\n{listed}\n)\n"},
            (
                'Replace c["NAME"] by the property of each list, and FullTextScore by '
                "VectorDistance(c.vector, [...]) for a vector search.",
            ),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from a query.

        Raises:
            ConfigError: It is none.
        """
        query = read_file(files, FILE)
        names = re.findall(r'\(c\[("(?:[^"\\]|\\.)*")\]', query)
        call = re.search(r"ORDER\s+BY\s+RANK\s+RRF\(", query)
        if call is None or not names:
            raise unreadable(FILE, cls.title, "no ORDER BY RANK RRF(…)")
        fusion: dict[str, Any] = {"method": "rrf"}
        sources = [json.loads(name) for name in names]
        if weights := re.search(r"(\[[-\d.eE+,\s]+\])\s*\)\s*$", query):
            fusion["weights"] = dict(zip(sources, json.loads(weights[1]), strict=True))
        top = re.match(r"SELECT\s+TOP\s+(\d+)", query)
        return {
            "runs": sources,
            "dialect": cls.name,
            "fusion": fusion,
            "top_k": None if top is None else int(top[1]),
        }
