"""Weaviate: ranked fusion and relative score fusion of a keyword and a vector search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fusion_bench.engines.dialects._dialect import EngineDialect, Form, share
from fusion_bench.engines.dialects._sums import PairFusion, ReciprocalRanks, ScaledScoreSum
from fusion_bench.engines.dialects._translation import Draft
from fusion_bench.experiment.dialect import dialects
from fusion_bench.methods.normalize.linear import MinMax

#: Variable of the server: how many documents either search fetches.
WINDOW = "QUERY_HYBRID_MAXIMUM_RESULTS"
#: Our names of the methods → those of the Python client.
CLIENT_NAMES = {"relativeScoreFusion": "RELATIVE_SCORE", "rankedFusion": "RANKED"}


class WeaviateFusion(PairFusion):
    """A keyword search of weight 1 − alpha and a vector search of weight alpha.

    Attributes:
        alpha: Weight of the vector search.
        vector: Which source that is; None = the only one of role ``semantic``.
    """

    share_field = "alpha"

    alpha: Annotated[float, Field(ge=0, le=1)] = 0.75
    vector: str | None = None


class RelativeScoreFusion(WeaviateFusion, ScaledScoreSum):
    """``relativeScoreFusion``: Σ_s w_s·(x − min) / (max − min); 1 for equal scores."""

    formula: ClassVar[str] = "Σ w·(x − min)/(max − min)"
    source: ClassVar[str] = "Weaviate, usecases/traverser/hybrid/hybrid_fusion.go"

    scale = our_scale = MinMax()

    method: str = "relativeScoreFusion"


class RankedFusion(WeaviateFusion, ReciprocalRanks):
    """``rankedFusion``: Σ_s w_s / (60 + position), positions from 0."""

    formula: ClassVar[str] = "Σ w/(60 + position)"
    source: ClassVar[str] = "Weaviate, usecases/traverser/hybrid/hybrid_fusion.go"

    constant_field = ""
    fixed_constant = 59

    method: str = "rankedFusion"


SERVER = f"{WINDOW}=$window\n"
CODE = """\
from weaviate.classes.query import HybridFusion

# client = weaviate.connect_to_local()
response = client.collections.use("COLLECTION").query.hybrid(
    query="QUERY",
    query_properties=[$other!r],
    target_vector=$vector!r,
    alpha=$alpha!r,
    fusion_type=HybridFusion.$client_name,
    limit=$top_k,
)
"""


@dialects.register
class Weaviate(EngineDialect):
    """Weaviate since 1.24."""

    name = "weaviate"
    title = "Weaviate"
    version = "1.24"
    source = "https://docs.weaviate.io/weaviate/concepts/search/hybrid-search"
    methods = (RelativeScoreFusion, RankedFusion)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 100, "top_k": 10}
    rank_base = 0
    ignores = (
        "The constant of rankedFusion cannot be set.",
        "Two searches are fused, a keyword search and a vector search, and no more.",
        "A bonus for top ranks, and a depth of its own for each list, cannot be said.",
    )

    forms = tuple(
        Form(
            {
                "search.py": CODE.replace("$client_name", name),
                "weaviate.env": f"{WINDOW}=$window\n",
            },
            {"method": method},
        )
        for method, name in CLIENT_NAMES.items()
    )
    notes = (
        "Replace query_properties and target_vector by your property and vector.",
        f"Set {WINDOW} on the server; it is 100 by default, and at least the limit counts.",
    )
    is_pair = True
    windows: ClassVar[Mapping[str, bool]] = {}
    fixed_constant = f"the constant is fixed, our k = {RankedFusion.fixed_constant}"
    score_methods: ClassVar[Mapping[str, str]] = {"min_max": "relativeScoreFusion"}
    equal_scores = 1

    @classmethod
    def convert(cls, draft: Draft) -> Mapping[str, Any]:
        """With the weight of the vector search."""
        method = super().convert(draft)["method"]
        return {"method": method, "alpha": share(draft.weights)[draft.find_vector()]}
