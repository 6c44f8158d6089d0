"""The weights of the three strategies."""

from __future__ import annotations

from collections.abc import Collection

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from fusion_bench.config.query_types import CONV_03_05, SUM_TOLERANCE
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.schema._base import Record, Score
from fusion_bench.schema.enumerations import SINGLE_STRATEGIES, QueryType, SearchStrategy

#: Rounding of a sum that is off by exactly the tolerance.
ROUNDING = 1e-9


class SearchWeights(Record):
    """What each strategy counts in the fusion (REQ-TYPE-005); they add up to 1 ± 0.01.

    Attributes:
        keyword: Weight of keyword search.
        semantic: Weight of semantic search.
        graph: Weight of graph search.
    """

    keyword: Score
    semantic: Score
    graph: Score

    @model_validator(mode="after")
    def _check_sum(self) -> SearchWeights:
        if abs(self.keyword + self.semantic + self.graph - 1) > SUM_TOLERANCE + ROUNDING:
            raise PydanticCustomError("weights_sum", "Weights must sum to 1.0")
        return self

    @classmethod
    def of_type(cls, query_type: QueryType) -> SearchWeights:
        """The weights that CONV-03-05 suggests for queries of a type.

        Raises:
            UnknownNameError: There is no such type.
        """
        if query_type not in CONV_03_05:
            raise UnknownNameError("query type", query_type, CONV_03_05, where="of_type")
        return cls(**CONV_03_05[query_type])

    def restrict(self, strategies: Collection[SearchStrategy]) -> SearchWeights:
        """The weights where only these strategies run: 0 for the others, the rest adds up to 1.

        Args:
            strategies: Those in use; ``hybrid`` means all three.

        Raises:
            ConfigError: All of them weigh 0.
        """
        if SearchStrategy.HYBRID in strategies:
            return self
        kept = {str(name): getattr(self, name) for name in SINGLE_STRATEGIES if name in strategies}
        total = sum(kept.values())
        if total <= 0:
            raise ConfigError(
                f"weights: the strategies in use weigh 0 ({', '.join(kept) or 'none is in use'}): "
                "give one of them a weight above 0"
            )
        shares = {name: kept.get(name, 0.0) / total for name in map(str, SINGLE_STRATEGIES)}
        return SearchWeights(**shares)


#: Of a search that says nothing of its weights.
DEFAULT_WEIGHTS = SearchWeights.of_type(QueryType.LOCAL)
