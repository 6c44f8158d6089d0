"""Qdrant: reciprocal rank fusion with weights of its own kind, and distribution-based fusion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.engines.dialects._configuration import Each, Maybe, Slot, Values
from fusion_bench.engines.dialects._dialect import EngineDialect, Form
from fusion_bench.engines.dialects._sums import GREATEST_K, RankConstant, RankTermSum
from fusion_bench.engines.dialects._translation import (
    CanonicalFusion,
    Draft,
    ReciprocalRankSum,
    name_weights,
)
from fusion_bench.experiment.dialect import dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import Fusion, Homogeneity, WeightedFusion
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.fuse.weighted_score import DistributionBasedFusion
from fusion_bench.methods.normalize import Normalizer
from fusion_bench.methods.normalize.linear import DBSF

FILE = "query.json"


class QdrantRRF(RankConstant, RankTermSum, WeightedFusion):
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

    def equivalent(self, weights: dict[str, float], /) -> Fusion | None:
        """Our ``rrf``: w/(rank + w·(k − 1)), so that k differs where the weights do."""
        constants = {name: weight * (self.k - 1) for name, weight in weights.items()}
        if max(constants.values()) > GREATEST_K:
            return None
        return RRF(k=constants, weights=weights)

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """Scaling all weights scales the scores only at k = 1."""
        return 1 if self.k == 1 else None


class QdrantDBSF(CanonicalFusion):
    """``dbsf``: Σ_s (x − (mean − 3·sd)) / (6·sd); no weights, missing documents add nothing."""

    formula: ClassVar[str] = "Σ (x − (mean − 3·sd))/(6·sd)"
    source: ClassVar[str] = "Qdrant 1.19, score_fusion.rs"

    method: str = "dbsf"

    @property
    def canonical(self) -> DistributionBasedFusion:
        """Our ``dbsf`` without weights."""
        return DistributionBasedFusion()


REQUEST = {
    "prefetch": Each({"query": "QUERY", "using": Slot("name"), "limit": Slot("window")}),
    "query": {
        "fusion": Maybe("score_fusion"),
        "rrf": Maybe("k", {"k": Slot("k"), "weights": Maybe("weights")}),
    },
    "limit": Slot("top_k"),
}


@dialects.register
class Qdrant(EngineDialect):
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

    forms = (Form({FILE: REQUEST}),)
    notes = (
        "Send it to POST /collections/COLLECTION/points/query.",
        "Replace each QUERY by the vector of its list, and using by the vector's name.",
        "Weights need version 1.17; a limit of prefetch holds for each shard.",
    )
    lists = (2, 1000)
    score_methods: ClassVar[Mapping[str, str]] = {"dbsf": "dbsf"}

    @classmethod
    def convert_ranks(cls, draft: Draft, ranks: ReciprocalRankSum) -> Mapping[str, Any]:
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
    def convert_scores(cls, draft: Draft, scale: Normalizer) -> Mapping[str, Any]:
        """``dbsf``, which has no weights."""
        super().convert_scores(draft, scale)
        if isinstance(scale, DBSF) and (scale.clip or scale.constant != 0.5):
            draft.lose("normalize: dbsf is not clipped to [0, 1], and equal scores count 0.5")
        if name_weights(draft.weights):
            draft.lose("weights: dbsf has none")
        return {"method": "dbsf"}

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Weights only where they were given."""
        values, fusion = super().list_values(system, roles), system.fusion
        if not isinstance(fusion, QdrantRRF):
            return {**values, "score_fusion": fusion.method}
        return values if fusion.weights else {**values, "weights": []}

    @classmethod
    def make_system(cls, values: Values) -> dict[str, Any]:
        """By the fusion that the query names."""
        return super().make_system({"method": values.get("score_fusion", "rrf"), **values})
