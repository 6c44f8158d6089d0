"""Weights, and any other number of a method, by query type.

Keyword, semantic and graph sources get weights by query type (table CONV-03-05). A classification
that is absent or below the minimum confidence counts as ``hybrid``. A source that is off weighs 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

from pydantic import RootModel, model_validator

from fusion_bench.config.models import Weight

ByRole: TypeAlias = dict[str, Weight]

#: Below this a classification counts as none.
MIN_CONFIDENCE = 0.7
#: The type of queries without a sure classification.
UNSURE = "hybrid"
#: A mapping with this one key stands for a value that depends on the type.
BY_QUERY_TYPE = "by_query_type"
#: How far the weights of one type may be from adding up to 1.
SUM_TOLERANCE = 0.01

CONV_03_05: dict[str, ByRole] = {
    "local": {"keyword": 0.35, "semantic": 0.35, "graph": 0.30},
    "global": {"keyword": 0.20, "semantic": 0.30, "graph": 0.50},
    "relationship": {"keyword": 0.20, "semantic": 0.20, "graph": 0.60},
    "hybrid": {"keyword": 0.33, "semantic": 0.34, "graph": 0.33},
}


class TypeWeights(RootModel[dict[str, ByRole]]):
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


def split_by_type(data: Any, parts: Collection[str]) -> Any:  # noqa: ANN401 - as YAML says it
    """Take ``{by_query_type: {type: value, …}}`` apart, wherever in these parts it stands.

    Args:
        data: A system as YAML says it.
        parts: Keys under which such a mapping may stand, at any depth.

    Returns:
        The same with the value for unsure queries in its place, and under ``by_query_type`` the
        parts of each type that is named somewhere; a type that one mapping does not name has the
        value for unsure queries there. Unchanged where there is no such mapping.

    Raises:
        ValueError: A mapping without a value for unsure queries, or one beside parts by type.
    """
    if not isinstance(data, Mapping):
        return data
    given = {part: data[part] for part in parts if part in data}
    types: set[str] = set()
    unsure = _value_for_type(given, UNSURE, types)
    if not types:
        return data
    if BY_QUERY_TYPE in data:
        raise ValueError(f"{BY_QUERY_TYPE} stands in the system and inside it: keep one")
    by_type = {name: _value_for_type(given, name, set()) for name in sorted(types)}
    return {**data, **unsure, BY_QUERY_TYPE: by_type}


def _value_for_type(data: Any, name: str, types: set[str]) -> Any:  # noqa: ANN401 - as above
    """The value for one type; adds the types that are named to ``types``."""
    if not isinstance(data, Mapping):
        return data
    if list(data) != [BY_QUERY_TYPE]:
        return {key: _value_for_type(value, name, types) for key, value in data.items()}
    values = CONV_03_05 if data[BY_QUERY_TYPE] == "conv-03-05" else data[BY_QUERY_TYPE]
    if not isinstance(values, Mapping) or UNSURE not in values:
        raise ValueError(
            f"{BY_QUERY_TYPE}: a mapping from query type to value is needed, with a value for "
            f"{UNSURE!r}: unsure queries use it"
        )
    types.update(map(str, values))
    return values.get(name, values[UNSURE])
