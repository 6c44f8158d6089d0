"""Weights by query type, and the type whose numbers a query gets.

Keyword, semantic and graph sources get weights by query type (table CONV-03-05). A classification
that is absent or below the minimum confidence counts as ``hybrid``. A source that is off weighs 0.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, TypeAlias

from pydantic import RootModel, model_validator

from fusion_bench.config.models import Weight
from fusion_bench.config.strict_numbers import StrictNumbers

ByRole: TypeAlias = dict[str, Weight]

#: Below this a classification counts as none.
MIN_CONFIDENCE = 0.7
#: The type of queries without a sure classification.
UNSURE = "hybrid"
#: Fields of a query with what a classifier said of its type.
PREDICTED_TYPE, PREDICTED_CONFIDENCE = "predicted_type", "predicted_confidence"
#: Which type of a query counts: the one given to it, the predicted one, or ``hybrid`` for all.
TypeSource: TypeAlias = Literal["given", "predicted", "hybrid"]
#: How far the weights of one type may be from adding up to 1.
SUM_TOLERANCE = 0.01

CONV_03_05: dict[str, ByRole] = {
    "local": {"keyword": 0.35, "semantic": 0.35, "graph": 0.30},
    "global": {"keyword": 0.20, "semantic": 0.30, "graph": 0.50},
    "relationship": {"keyword": 0.20, "semantic": 0.20, "graph": 0.60},
    "hybrid": {"keyword": 0.33, "semantic": 0.34, "graph": 0.33},
}


class TypeWeights(StrictNumbers, RootModel[dict[str, ByRole]]):
    """Query type → source name or role → weight; ``conv-03-05`` names the published table.

    Without a type for ``hybrid`` there is nothing for unsure queries, so it must be there.
    """

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        return CONV_03_05 if data == "conv-03-05" else data

    @model_validator(mode="after")
    def _check_complete(self) -> TypeWeights:
        if UNSURE not in self.root:
            raise ValueError(f"weights for type {UNSURE!r} are required: unsure queries use them")
        for query_type, weights in self.root.items():
            total = sum(weights.values())
            if abs(total - 1) > SUM_TOLERANCE + 1e-9:
                raise ValueError(
                    f"{query_type}: the weights add up to {total:g}, and must add up to 1 ± "
                    f"{SUM_TOLERANCE}"
                )
        return self


def type_of(query_type: str | None, confidence: float | None, known: Collection[str]) -> str:
    """The type whose weights a query gets.

    A type without a confidence was given by the user, so it is always used.
    """
    unsure = confidence is not None and confidence < MIN_CONFIDENCE
    return UNSURE if query_type is None or unsure or query_type not in known else query_type
