"""Numbers that depend on a field of the query: its type or its intent.

A system has one such key at most. Each value of the field is a class of queries; the fallback
class answers queries whose field has another value, or none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fusion_bench.config.query_types import CONV_03_05, UNSURE, type_of


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
        raise ValueError(f"{key.key} stands in the system and inside it: keep one")
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
            raise ValueError(f"{key.key}: another such mapping stands inside: keep one")
    keys.add(key)
    classes.update(map(str, values))
    return values.get(name, values[key.fallback])
