"""Elasticsearch: the ``rrf`` retriever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fusion_bench.config.models import Weight
from fusion_bench.config.parameters import Parameter, integer
from fusion_bench.engines._canonical import CanonicalFusion
from fusion_bench.experiment.dialect import Dialect, dialects
from fusion_bench.fuse.rrf import RRF


class ElasticsearchRRF(CanonicalFusion):
    """``rrf``: Σ_s w_s / (rank_constant + rank), ranks from 1.

    Attributes:
        rank_constant: Flattens the difference between neighboring ranks.
        weights: By source name or role; since 9.2.
    """

    formula: ClassVar[str] = "Σ w/(rank_constant + rank)"
    source: ClassVar[str] = "Elasticsearch reference, RRF retriever"

    method: str = "rrf"
    rank_constant: Annotated[int, Field(ge=1, le=1000)] = 60
    weights: dict[str, Weight] = Field(default_factory=dict)

    @property
    def canonical(self) -> RRF:
        """Our ``rrf``."""
        return RRF(k=self.rank_constant, weights=self.weights)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The rank constant and the weights."""
        _, *weights = self.canonical.space(sources)
        return (integer("rank_constant", 1, 1000, log=True), *weights)


@dialects.register
class Elasticsearch(Dialect):
    """Elasticsearch 9.2."""

    name = "elasticsearch"
    title = "Elasticsearch"
    version = "9.2"
    source = "https://www.elastic.co/docs/reference/elasticsearch/rest-apis/retrievers"
    methods = (ElasticsearchRRF,)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 10, "top_k": 10}  # rank_window_size
