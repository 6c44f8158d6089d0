"""Qdrant: reciprocal rank fusion with weights of its own kind, and distribution-based fusion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fusion_bench.config.parameters import Parameter, integer
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    most_results,
    read_json,
    refuse_unreadable,
    weights_by_source,
    windows_by_source,
    write_json,
)
from fusion_bench.engines.dialects._sums import RankTermSum
from fusion_bench.engines.dialects._translation import (
    CanonicalFusion,
    Draft,
    ReciprocalRanks,
    name_weights,
)
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import Fusion, Homogeneity, WeightedFusion
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.fuse.weighted_score import DistributionBasedFusion
from fusion_bench.methods.normalize.linear import DBSF

FILE = "query.json"
#: Greatest k of our ``rrf``.
GREATEST_CONSTANT = 1000


class QdrantRRF(RankTermSum, WeightedFusion):
    """``rrf``: Σ_s 1 / ((position + 1)/w_s + k − 1), positions from 0.

    A weight divides the rank: it stretches or compresses the list, and does not multiply the
    score. With weights of 1 our ``rrf`` of k is this one of k + 1.

    Attributes:
        k: Flattens the difference between neighboring ranks.
        weights: By source name or role; since 1.17.
    """

    formula: ClassVar[str] = "Σ 1/((position + 1)/w + k − 1)"
    source: ClassVar[str] = "Qdrant 1.19, reciprocal_rank_fusion.rs"

    method: str = "rrf"
    k: Annotated[int, Field(ge=1, le=1001)] = 2

    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:
        """(n,): the term of a list of this weight."""
        return 1 / (ranks / weight + self.k - 1)

    def equivalent(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> Fusion | None:
        """Our ``rrf``: w/(rank + w·(k − 1)), so that k differs where the weights do."""
        weights = dict(zip(sources, self.source_weights(sources, roles).tolist(), strict=True))
        constants = {name: weight * (self.k - 1) for name, weight in weights.items()}
        if max(constants.values()) > GREATEST_CONSTANT:
            return None
        return RRF(k=constants, weights=weights)

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """Scaling all weights scales the scores only at k = 1."""
        return 1 if self.k == 1 else None

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """K and the weights."""
        return (integer("k", 1, 1000, log=True), *super().space(sources))


class QdrantDBSF(CanonicalFusion):
    """``dbsf``: Σ_s (x − (mean − 3·sd)) / (6·sd); no weights, missing documents add nothing."""

    formula: ClassVar[str] = "Σ (x − (mean − 3·sd))/(6·sd)"
    source: ClassVar[str] = "Qdrant 1.19, score_fusion.rs"

    method: str = "dbsf"

    @property
    def canonical(self) -> DistributionBasedFusion:
        """Our ``dbsf`` without weights."""
        return DistributionBasedFusion()


@dialects.register
class Qdrant(Dialect):
    """Qdrant 1.19."""

    name = "qdrant"
    title = "Qdrant"
    version = "1.19"
    source = "https://qdrant.tech/documentation/concepts/hybrid-queries/"
    methods = (QdrantRRF, QdrantDBSF)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 10, "top_k": 10}  # limit
    rank_base = 0
    ignores = (
        "A bonus for top ranks cannot be said.",
        "A weight that multiplies the score cannot be said, except at k = 1.",
        "dbsf has no weights.",
    )

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """``rrf`` for reciprocal ranks, ``dbsf`` for sums of scores scaled that way."""
        draft = Draft(cls, system, roles)
        if len(draft.sources) < 2:
            return draft.refuse("runs: two or more lists are fused")
        fusion: Mapping[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
        elif (ranks := draft.find_reciprocal_ranks()) is not None:
            fusion = cls._rrf(draft, ranks)
        elif (mean := draft.find_score_sum()) is not None:
            if not isinstance(scale := mean.normalize, DBSF):
                return draft.refuse(f"normalize: {cls.title} has no {scale.method!r}")
            if scale.clip or scale.constant != 0.5:
                draft.lose("normalize: dbsf is not clipped to [0, 1], and equal scores count 0.5")
            if name_weights(draft.weights):
                draft.lose("weights: dbsf has none")
            fusion = {"method": "dbsf"}
        else:
            return draft.refuse_fusion()
        return draft.finish(fusion, **draft.choose_windows(by_source=True))

    @classmethod
    def _rrf(cls, draft: Draft, ranks: ReciprocalRanks) -> Mapping[str, Any]:
        """w/(c + rank) is Qdrant's term of weight c/(k − 1), if c/w is the same for all lists."""
        constants, weights = ranks.k, ranks.weights
        most = max(constants.values())
        if most == 0:
            return {"k": 1, "weights": name_weights(weights)}
        if ranks.has_equal_weights and set(constants.values()) == {round(most)}:
            return {"k": round(most) + 1}
        ratios = [constants[name] / weights[name] for name in weights]
        if max(ratios) - min(ratios) <= 1e-12 * max(ratios):
            whole = max(1, round(most))
            return {"k": whole + 1, "weights": {name: constants[name] / whole for name in weights}}
        mean = math.fsum(weights.values()) / len(weights)
        draft.lose("weights: a weight divides the rank here, and does not multiply the score")
        constant = draft.choose_rank_constant(ranks, 1, base=0)
        return {"k": constant, "weights": {name: w / mean for name, w in weights.items()}}

    @classmethod
    def write(cls, system: System) -> Configuration:
        """The body of a query request."""
        check_writable(cls, system)
        windows, fusion = windows_by_source(system), system.fusion
        prefetch = [
            {"query": "QUERY", "using": name, "limit": windows[name]} for name in system.runs
        ]
        query: dict[str, Any] = {"fusion": "dbsf"}
        if isinstance(fusion, QdrantRRF):
            weights = [*weights_by_source(system).values()]
            query = {"rrf": {"k": fusion.k, **({"weights": weights} if fusion.weights else {})}}
        request = {"prefetch": prefetch, "query": query, "limit": most_results(system)}
        return Configuration(
            {FILE: write_json(request)},
            (
                "Send it to POST /collections/COLLECTION/points/query.",
                "Replace each QUERY by the vector of its list, and using by the vector's name.",
                "Weights need version 1.17; a limit of prefetch holds for each shard.",
            ),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from a query request.

        Raises:
            ConfigError: It is none.
        """
        request = read_json(files, FILE)
        with refuse_unreadable(FILE, cls.title):
            names = [entry["using"] for entry in request["prefetch"]]
            query = request["query"]
            fusion: dict[str, Any] = {"method": query.get("fusion", "rrf")}
            if "rrf" in query:
                fusion["k"] = query["rrf"].get("k", 2)
                if "weights" in query["rrf"]:
                    fusion["weights"] = dict(zip(names, query["rrf"]["weights"], strict=True))
            depth = {entry["using"]: entry.get("limit", 10) for entry in request["prefetch"]}
            limits = set(depth.values())
            return {
                "runs": names,
                "dialect": cls.name,
                "fusion": fusion,
                "depth": limits.pop() if len(limits) == 1 else depth,
                "top_k": request.get("limit", 10),
            }
