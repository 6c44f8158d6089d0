"""Engines' configurations as templates: filled with a system's values, matched to read it back.

A template of JSON is JSON with :class:`Slot`, :class:`Each` and :class:`Maybe` in it. A template of
any other text has ``$name`` in place of a value, with how it is written after ``!``;
``$[…$|…$]`` is written once a source, with what follows ``$|`` between two of them; ``$(…$)`` only
where its values are there.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fusion_bench.engines.dialects._translation import LONGEST_WINDOW
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Dialect
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import NoBlend

#: What is written of a system, by name; ``sources`` has the values of each list.
Values: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Slot:
    """A place in JSON for a value.

    Attributes:
        name: Of the value.
    """

    name: str


@dataclass(frozen=True)
class Each:
    """A list in JSON with one item a source.

    Attributes:
        item: Its template.
    """

    item: Any


@dataclass(frozen=True)
class Maybe:
    """What an object in JSON has only where a value is there.

    Attributes:
        name: Of the value.
        item: Its template; None = a slot for the value.
    """

    name: str
    item: Any = None

    @property
    def template(self) -> Any:  # noqa: ANN401 - JSON
        """What stands there."""
        return Slot(self.name) if self.item is None else self.item


def _is_there(values: Values, name: str) -> bool:
    return values.get(name) not in (None, {}, [])


def _fill_json(template: Any, values: Values) -> Any:  # noqa: ANN401 - JSON
    if isinstance(template, Slot):
        return values[template.name]
    if isinstance(template, Maybe):
        return _fill_json(template.template, values)
    if isinstance(template, Each):
        return [_fill_json(template.item, {**values, **source}) for source in values["sources"]]
    if isinstance(template, Mapping):
        return {
            _fill_json(key, values): _fill_json(item, values)
            for key, item in template.items()
            if not isinstance(item, Maybe) or _is_there(values, item.name)
        }
    if isinstance(template, list):
        return [_fill_json(item, values) for item in template]
    return template


def _match_json(template: Any, data: Any, values: Values) -> Values:  # noqa: ANN401 - JSON
    if isinstance(template, Slot):
        values[template.name] = data
    elif isinstance(template, Each):
        values["sources"] = [_match_json(template.item, item, {}) for item in data]
    elif isinstance(template, Maybe):
        _match_json(template.template, data, values)
    elif isinstance(template, Mapping):
        for key, item in template.items():
            if isinstance(key, Slot):
                ((values[key.name], value),) = data.items()
                _match_json(item, value, values)
            elif key in data or not isinstance(item, Maybe):
                _match_json(item, data[key], values)
    else:
        _match_items(template, data, values)
    return values


def _match_items(template: Any, data: Any, values: Values) -> None:  # noqa: ANN401 - JSON
    if isinstance(template, list):
        for item, given in zip(template, data, strict=True):
            _match_json(item, given, values)
    elif template != data:
        raise ValueError(f"{data!r:.60} in place of {template!r:.60}")


#: A part of a template of text that is no text.
_PART: Final = re.compile(
    r"\$\[(?P<each>.*?)(?:\$\|(?P<between>.*?))?\$\]|\$\((?P<maybe>.*?)\$\)"
    r"|\$(?P<slot>\w+)(?:!(?P<form>\w))?",
    re.DOTALL,
)
_LITERAL: Final = r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[^"'\n])+?"""


def _read_plain(text: str) -> Any:  # noqa: ANN401 - a number or a word
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


#: How a value is written, what that looks like, and how it is read: of Python, of JSON, of SQL, as
#: it is up to the end of the line, and else a number or a word.
_FORMS: Final[Mapping[str | None, tuple[Callable[[Any], str], str, Callable[[str], Any]]]] = {
    "r": (repr, _LITERAL, ast.literal_eval),
    "j": (lambda value: json.dumps(value, allow_nan=False), _LITERAL, json.loads),
    "q": (
        lambda text: "'" + text.replace("'", "''") + "'",
        "'(?:[^']|'')*'",
        lambda text: text[1:-1].replace("''", "'"),
    ),
    "t": (str, r"[^\n]+?", str),
    None: (str, r"""[^\s"'(){}\[\],;:]+""", _read_plain),
}


def _fill_text(template: str, values: Values) -> str:
    def write(part: re.Match[str]) -> str:
        if (item := part["each"]) is not None:
            texts = [_fill_text(item, {**values, **source}) for source in values["sources"]]
            return (part["between"] or "").join(texts)
        if (item := part["maybe"]) is not None:
            are_there = [_is_there(values, slot["slot"]) for slot in _PART.finditer(item)]
            return _fill_text(item, values) if all(are_there) else ""
        return _FORMS[part["form"]][0](values[part["slot"]])

    return _PART.sub(write, template)


def _match_text(template: str, text: str) -> Values:
    """The values of a text, those of each list under ``sources``.

    Raises:
        ValueError: It is not as the template says.
    """
    pattern, reads = _make_pattern(template)
    match = re.fullmatch(pattern, text)
    if match is None:
        raise ValueError("another text")
    values: Values = {"sources": []}
    for name, given in match.groupdict().items():
        if given is None:
            continue
        if isinstance(read := reads[name], str):
            for n, item in enumerate(re.finditer(_make_pattern(read)[0], given)):
                if n == len(values["sources"]):
                    values["sources"].append({})
                values["sources"][n] |= _match_text(read, item[0])
                values["sources"][n].pop("sources")
        else:
            values[name] = read(given)
    return values


def _make_pattern(template: str) -> tuple[str, dict[str, str | Callable[[str], Any]]]:
    """A regular expression with a group a value, and how each group is read.

    A group of the values of each list is read by the template of one of them.
    """
    pattern, end = "", 0
    reads: dict[str, str | Callable[[str], Any]] = {}
    for part in _PART.finditer(template):
        pattern += re.escape(template[end : part.start()])
        end = part.end()
        if (item := part["each"]) is not None:
            once = re.sub(r"\(\?P<\w+>", "(?:", _make_pattern(item)[0])
            name, between = f"each_{part.start()}", re.escape(part["between"] or "")
            pattern += f"(?P<{name}>{once}(?:{between}{once})*)"
            reads[name] = item
        elif (item := part["maybe"]) is not None:
            inner, more = _make_pattern(item)
            pattern, reads = f"{pattern}(?:{inner})?", reads | more
        elif part["slot"] in reads:
            pattern += f"(?P={part['slot']})"
        else:
            _, regex, reads[part["slot"]] = _FORMS[part["form"]]
            pattern += f"(?P<{part['slot']}>{regex})"
    return pattern + re.escape(template[end:]), reads


def fill_template(template: Any, values: Values) -> str:  # noqa: ANN401 - JSON or a text
    """The text of a file."""
    if isinstance(template, str):
        return _fill_text(template, values)
    return write_json(_fill_json(template, values))


def match_template(template: Any, text: str) -> Values:  # noqa: ANN401 - JSON or a text
    """The values that a text was filled with.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: It is not as the template says.
    """
    if isinstance(template, str):
        return _match_text(template, text)
    return _match_json(template, json.loads(text), {})


def write_json(data: Any) -> str:  # noqa: ANN401 - whatever the engine reads
    """JSON as people read it."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def check_writable(dialect: type[Dialect], system: System) -> None:
    """Refuse a system that no request of the engine can say.

    Raises:
        ConfigError: It is of another dialect, or has a blend, numbers by class or a threshold.
    """
    if system.dialect != dialect.name:
        raise ConfigError(
            f"system {system.name!r}: dialect is {system.dialect}, {dialect.name} is needed: "
            "translate it first"
        )
    extras = {
        "blend": not isinstance(system.blend, (NoBlend, *dialect.blends)),
        system.class_field or "by_query_type": system.class_key is not None,
        "policy": system.policy is not None,
        "min_relevance": system.min_relevance != dialect.defaults.get("min_relevance"),
        "stages": bool(system.stages),
    }
    if unwritten := [key for key, is_set in extras.items() if is_set]:
        raise ConfigError(
            f"system {system.name!r}: {', '.join(unwritten)} cannot be written for "
            f"{dialect.title}: translate it first"
        )


def weights_by_source(system: System) -> dict[str, float]:
    """The weight of each source of a system whose weights name sources, not roles.

    Raises:
        ConfigError: They name roles.
    """
    nothing = [frozenset[str]()] * len(system.runs)
    try:
        weights = system.fusion.source_weights(system.runs, nothing).tolist()
    except ConfigError as error:
        raise ConfigError(
            f"system {system.name!r}: {error}: to write it, name sources instead of roles, or "
            "translate it first"
        ) from None
    return dict(zip(system.runs, weights, strict=True))


def windows_by_source(system: System) -> dict[str, int]:
    """How many documents of each source are fetched."""
    depth = system.depth
    if isinstance(depth, Mapping):
        return {name: depth.get(name, LONGEST_WINDOW) for name in system.runs}
    return dict.fromkeys(system.runs, depth or LONGEST_WINDOW)


def common_window(system: System) -> int:
    """How many documents of every source are fetched.

    Raises:
        ConfigError: Not the same of each.
    """
    windows = set(windows_by_source(system).values())
    if len(windows) > 1:
        raise ConfigError(
            f"system {system.name!r}: depth: all lists have one window here: set one number"
        )
    return windows.pop()
