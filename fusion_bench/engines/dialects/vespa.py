"""Vespa: reciprocal ranks and linear normalization in the global phase of a rank profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fusion_bench.config.models import Weight
from fusion_bench.config.parameters import Parameter
from fusion_bench.engines.dialects._configuration import Slot, Values
from fusion_bench.engines.dialects._dialect import EngineDialect, Form
from fusion_bench.engines.dialects._sums import CanonicalRRF
from fusion_bench.engines.dialects._translation import (
    CanonicalFusion,
    Draft,
    ReciprocalRankSum,
    name_weights,
)
from fusion_bench.experiment.dialect import dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.fuse.weighted_score import WeightedScore
from fusion_bench.methods.normalize.linear import MinMax

PROFILE, QUERY = "rank-profile.sd", "query.json"


class VespaReciprocalRank(CanonicalRRF):
    """``reciprocal_rank``: Σ_s w_s / (k + rank), ranks from 1 over all hits of the global phase.

    Attributes:
        k: Flattens the difference between neighboring ranks.
        weights: By source name or role: factors in the expression.
    """

    formula: ClassVar[str] = "Σ w·reciprocal_rank(feature, k)"
    source: ClassVar[str] = "Vespa documentation, phased ranking"

    method: str = "reciprocal_rank"
    k: Annotated[float, Field(ge=0, le=1000)] = 60
    weights: dict[str, Weight] = Field(default_factory=dict)


class VespaNormalizeLinear(CanonicalFusion):
    """``normalize_linear``: Σ_s w_s·(x − min) / (max − min); 0.5 for equal scores.

    The bench divides the sum by the sum of the weights, which changes no order.

    Attributes:
        weights: By source name or role: factors in the expression.
    """

    formula: ClassVar[str] = "Σ w·normalize_linear(feature)"
    source: ClassVar[str] = "Vespa documentation, phased ranking; LinearNormalizer.java"

    method: str = "normalize_linear"
    weights: dict[str, Weight] = Field(default_factory=dict)

    @property
    def canonical(self) -> WeightedScore:
        """Our weighted mean, where a list without the document counts 0."""
        return WeightedScore(normalize=MinMax(constant=0.5), missing="zero", weights=self.weights)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The weights."""
        return RRF(weights=self.weights).space(sources)[1:]


PROFILE_CODE = """\
rank-profile fused {
$[    # $name!j
    function list_$n() {
        expression: FEATURE
    }
$]    global-phase {
        rerank-count: $window
        expression: $[$weight * $method(list_$n$(, $k$))$| + $]
    }
}
"""


@dialects.register
class Vespa(EngineDialect):
    """Vespa 8."""

    name = "vespa"
    title = "Vespa"
    version = "8"
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
                PROFILE: PROFILE_CODE,
                QUERY: {"yql": "YQL", "ranking": "fused", "hits": Slot("top_k")},
            }
        ),
    )
    notes = (
        f"Put {PROFILE} into the schema; add the inputs and the first phase that it needs.",
        "Replace each FEATURE by the rank feature of its list, such as bm25(text) or "
        "closeness(field, embedding), and YQL by the query.",
    )
    lists = (2, 1000)
    lists_rule = "two or more features are fused"
    windows: ClassVar[Mapping[str, bool]] = {"cut_to_window": True}
    score_methods: ClassVar[Mapping[str, str]] = {"min_max": "normalize_linear"}

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
