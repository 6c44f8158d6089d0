"""What depends on a query's fields: conditions, weights by type, numbers by class.

Keyword, semantic and graph sources get weights by query type (table CONV-03-05). A classification
that is absent or below the minimum confidence counts as ``hybrid``. A source that is off weighs 0.

A system has one such key at most. Each value of the field is a class of queries; the fallback
class answers queries whose field has another value, or none.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from fusion_bench.config.models import UniqueNames, Weight, refuse_repeats

#: Fields that no two queries share.
UNIQUE_FIELDS = frozenset({"id", "text"})


def _list_values(value: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
    """The values as text: one stands for a list of one, a number for its JSON."""
    values = value if isinstance(value, list | tuple) else [value]
    return tuple(json.dumps(v) if isinstance(v, bool | int | float) else v for v in values)


def check_field_name(name: str) -> str:
    """The name of a field.

    Raises:
        ValueError: Every query has another value there.
    """
    if name in UNIQUE_FIELDS:
        raise ValueError(f"{name!r} is different for every query: name another field")
    return name


FieldName: TypeAlias = Annotated[str, AfterValidator(check_field_name)]
#: Names of different fields.
FieldNames: TypeAlias = Annotated[tuple[FieldName, ...], AfterValidator(refuse_repeats)]
#: Values of a field, of which a query must have one.
FieldValues: TypeAlias = Annotated[UniqueNames, Field(min_length=1), BeforeValidator(_list_values)]
#: Field → values; a query must have one of the values of every field.
FieldConditions: TypeAlias = dict[FieldName, FieldValues]


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


def _find_table(data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
    """The published table of a name; anything else as it is."""
    return CONV_03_05 if data == "conv-03-05" else data


def _check_complete(table: dict[str, ByRole]) -> dict[str, ByRole]:
    """The table.

    Raises:
        ValueError: There is nothing for unsure queries, or weights do not add up to 1.
    """
    if UNSURE not in table:
        raise ValueError(f"weights for type {UNSURE!r} are required: unsure queries use them")
    for query_type, weights in table.items():
        total = sum(weights.values())
        if abs(total - 1) > SUM_TOLERANCE + 1e-9:
            raise ValueError(
                f"{query_type}: the weights add up to {total:g}, and must add up to 1 ± "
                f"{SUM_TOLERANCE}"
            )
    return table


#: Query type → source name or role → weight; ``conv-03-05`` names the published table.
TypeWeights: TypeAlias = Annotated[
    dict[str, ByRole], BeforeValidator(_find_table), AfterValidator(_check_complete)
]


def type_of(query_type: str | None, confidence: float | None, known: Collection[str]) -> str:
    """The type whose weights a query gets.

    A type without a confidence was given by the user, so it is always used.
    """
    unsure = confidence is not None and confidence < MIN_CONFIDENCE
    return UNSURE if query_type is None or unsure or query_type not in known else query_type


@dataclass(frozen=True)
class ClassKey:
    """A key of a system under which each class of queries has a configuration of its own.

    Attributes:
        key: The key, in a system or in place of a number.
        field: The field of the query that decides.
        fallback: The class of all other queries; it is required.
        title: What a class is called in messages.
        fallback_use: Who gets the fallback.
    """

    key: str
    field: str
    fallback: str
    title: str
    fallback_use: str

    def class_of(self, value: str | None, confidence: float | None, known: Collection[str]) -> str:
        """The class whose numbers a query gets.

        Args:
            value: The field of the query; None = absent.
            confidence: How sure the query's type is; only types look at it.
            known: The classes that have numbers.
        """
        if self.field == "type":
            return type_of(value, confidence, known)
        return value if value is not None and value in known else self.fallback

    def require_fallback(self, names: Collection[str]) -> None:
        """Refuse classes without the fallback.

        Raises:
            ValueError: It is missing.
        """
        if self.fallback not in names:
            raise ValueError(f"{self.field} {self.fallback!r} is required: {self.fallback_use}")


BY_TYPE: Final = ClassKey("by_query_type", "type", UNSURE, "query type", "unsure queries use it")
BY_INTENT: Final = ClassKey(
    "by_intent", "intent", "default", "intent", "queries of another intent, or of none, use it"
)
#: Every such key, by its name in YAML.
CLASS_KEYS: Final[Mapping[str, ClassKey]] = {key.key: key for key in (BY_TYPE, BY_INTENT)}


def find_class_key(data: object) -> ClassKey | None:
    """The key of a mapping that stands in place of a number; None = it is none."""
    if not isinstance(data, Mapping) or len(data) != 1:
        return None
    return CLASS_KEYS.get(str(next(iter(data))))


def split_by_class(data: Any, parts: Collection[str]) -> Any:  # noqa: ANN401 - as YAML says it
    """Take ``{by_query_type: {type: value, …}}`` apart, wherever in these parts it stands.

    ``by_intent`` likewise.

    Args:
        data: A system as YAML says it.
        parts: Keys under which such a mapping may stand, at any depth.

    Returns:
        The same with the value of the fallback in its place, and under the key the parts of each
        class that is named somewhere; a class that one mapping does not name has the value of the
        fallback there. Unchanged where there is no such mapping.

    Raises:
        ValueError: A mapping without a value for the fallback, one beside parts by class, or two
            keys in one system.
    """
    if not isinstance(data, Mapping):
        return data
    given = {part: data[part] for part in parts if part in data}
    keys: set[ClassKey] = set()
    classes: set[str] = set()
    fallback = _value_for_class(given, None, keys, classes)
    stated = {key for name, key in CLASS_KEYS.items() if data.get(name) is not None}
    if len(keys | stated) > 1:
        raise ValueError(f"{' and '.join(sorted(CLASS_KEYS))} exclude each other: keep one")
    if not keys:
        return data
    [key] = keys
    if key.key in data:
        raise ValueError(f"{key.key} is in the system and inside it: keep one")
    by_class = {name: _value_for_class(given, name, set(), set()) for name in sorted(classes)}
    return {**data, **fallback, key.key: by_class}


def _value_for_class(data: Any, name: str | None, keys: set[ClassKey], classes: set[str]) -> Any:  # noqa: ANN401 - as above
    """The value for one class, None = the fallback; adds the keys and classes that are named."""
    if not isinstance(data, Mapping):
        return data
    key = find_class_key(data)
    if key is None:
        return {k: _value_for_class(value, name, keys, classes) for k, value in data.items()}
    values = data[key.key]
    if key is BY_TYPE and values == "conv-03-05":
        values = CONV_03_05
    if not isinstance(values, Mapping) or key.fallback not in values:
        raise ValueError(
            f"{key.key}: a mapping from {key.title} to value is needed, with a value for "
            f"{key.fallback!r}: {key.fallback_use}"
        )
    for value in values.values():
        if find_class_key(value) is not None:
            raise ValueError(f"{key.key}: another such mapping is inside: keep one")
    keys.add(key)
    classes.update(map(str, values))
    return values.get(name, values[key.fallback])
