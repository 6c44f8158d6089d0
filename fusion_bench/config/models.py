"""Strict models of configuration, and errors of one line.

A key that a model does not know is an error that lists the known ones; an error names the file,
the line and the path of the offending value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, TypeAlias, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError, PydanticKnownError

from fusion_bench.errors import ConfigError, did_you_mean
from fusion_bench.util.formatting import is_encodable, pluralize

Location: TypeAlias = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)
V = TypeVar("V")

#: Limits of a YAML file, far above any that is written by hand.
MOST_CHARACTERS, MOST_VALUES = 2_000_000, 100_000
EXPONENT: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+")
#: How the YAML parser's complaint begins → what to look for.
PARSER_PROBLEMS: Final = {
    r"found character '\t'": "a tab stands where a line is indented or a value begins: use spaces",
    "expected <block end>": "check how this line and those above are indented",
    "mapping values are not": "check how this line is indented, and quote a text that holds ': '",
    "could not find expected ':'": "a key without ': ' and a value, here or in the line above",
    "expected ',' or": "a bracket or brace is open, or a comma is missing, here or in a line above",
}
#: pydantic's messages in terms of YAML instead of Python, by type of error.
NEEDED = {
    "dict_type": "a mapping of keys to values is needed",
    "model_type": "a mapping of keys to values is needed",
    "string_type": "text is needed (numbers, dates, yes and on need quotes)",
    "tuple_type": "a list is needed, such as [a, b]",
}


def _read_exponent(value: object) -> object:
    """The number of ``1e-3``, which YAML 1.1 takes for text; anything else as it is."""
    return float(value) if isinstance(value, str) and EXPONENT.fullmatch(value) else value


def _refuse_text(value: object) -> object:
    """The value, unless it is one that pydantic would take for a whole number.

    Raises:
        PydanticKnownError: It is text, or true or false.
    """
    if isinstance(value, bool | str):
        raise PydanticKnownError("int_type")
    return value


#: Numbers, of which ``'20'`` and ``true`` are none.
Number: TypeAlias = Annotated[float, Strict(), BeforeValidator(_read_exponent)]
WholeNumber: TypeAlias = Annotated[int, BeforeValidator(_refuse_text)]
#: A finite weight; 0 switches its source off.
Weight: TypeAlias = Annotated[Number, Field(ge=0, allow_inf_nan=False)]


def _refuse_repeats(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, each of them different.

    Raises:
        ValueError: One is listed twice.
    """
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name!r} is listed twice: keep one")
    return names


#: Different names, in a list.
UniqueNames: TypeAlias = Annotated[tuple[str, ...], AfterValidator(_refuse_repeats)]


def _sort_by_rank(table: dict[int, V]) -> dict[int, V]:
    return dict(sorted(table.items()))


#: Rank up to which → value, in the order of the ranks.
ByRank: TypeAlias = Annotated[dict[Annotated[int, Field(ge=1)], V], AfterValidator(_sort_by_rank)]


class StrictModel(BaseModel):
    """A frozen model that refuses keys it does not know, by name.

    Attributes:
        old_keys: Key of an earlier version → what to write now, or to delete it.
    """

    old_keys: ClassVar[Mapping[str, str]] = {}
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        if isinstance(data, Mapping):
            for key in data:
                if key not in cls.model_fields:
                    raise PydanticCustomError(
                        "unknown_key",
                        "{text}",
                        {"text": _describe_unknown_key(key, cls), "key": key},
                    )
        return data


def _describe_unknown_key(key: object, model: type[StrictModel]) -> str:
    if isinstance(key, str) and key in model.old_keys:
        return model.old_keys[key]
    known = list(model.model_fields)
    hint = did_you_mean(str(key), known)
    if isinstance(key, bool):
        hint = "; YAML reads a bare on, off, yes or no as true or false: quote it"
    return f"unknown key {str(key)!r}{hint} (known: {', '.join(known)})"


@dataclass(frozen=True, repr=False)
class Source:
    """Parsed YAML and where each of its values stands.

    Attributes:
        path: The file.
        data: Its content.
        lines: 1-based line of each key or item, by its path.
        overrides: Path of a value that replaces the file's → the option that set it, such as
            ``systems.rrf.fusion.k=20``.
    """

    path: Path
    data: Any
    lines: Mapping[Location, int] = field(default_factory=dict)
    overrides: Mapping[Location, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """The file, and how much stands there."""
        changed = f", {pluralize(len(self.overrides), 'override')}" if self.overrides else ""
        return f"Source({str(self.path)!r}, {pluralize(len(self.data), 'entry')}{changed})"

    def where(self, location: Location) -> str:
        """``file:line: path`` of a value, by the deepest known part of its path.

        A value that an option set has ``--set path``.
        """
        if any(self._is_set_by(place, location) for place in self.overrides):
            return f"--set {'.'.join(str(part) for part in location)}"
        known = [location[:n] for n in range(len(location), 0, -1) if location[:n] in self.lines]
        line = f":{self.lines[known[0]]}" if known else ""
        path = ".".join(str(part) for part in location)
        return f"{self.path}{line}: {path}" if path else f"{self.path}{line}"

    @property
    def override_texts(self) -> tuple[str, ...]:
        """The options that replace values, each once."""
        return tuple(dict.fromkeys(self.overrides.values()))

    def _is_set_by(self, place: Location, location: Location) -> bool:
        """Whether the option for a place set this value, or made the mapping that it is."""
        is_inside = location[: len(place)] == place
        is_above = place[: len(location)] == location and location not in self.lines
        return is_inside or (is_above and bool(location))


def read_yaml(path: Path) -> Source:
    """Read a YAML file safely.

    Raises:
        ConfigError: No such file, not YAML, a repeated key, or not a mapping at the top.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MOST_CHARACTERS + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file{_suggest_file(path)}") from None
    except (OSError, ValueError) as error:  # a folder, not UTF-8, or a path with a null byte
        raise ConfigError(f"{path}: cannot be read as UTF-8 text: {error}") from None
    if len(text) > MOST_CHARACTERS:
        raise ConfigError(
            f"{path}: longer than {MOST_CHARACTERS:,} characters: is it the right file?"
        )
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        lines: dict[Location, int] = {}
        if node is not None:
            _collect_lines(node, (), lines, path)
        data = yaml.safe_load(text)
    except RecursionError:
        raise ConfigError(f"{path}: nests too deeply, or an alias contains itself") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date or number that is none
        raise ConfigError(f"{path}{_describe_yaml_error(error)}") from None
    if not isinstance(data, dict):
        given = "nothing" if data is None else f"a {type(data).__name__}"
        raise ConfigError(f"{path}: a mapping of keys to values is needed, given {given}")
    return Source(path, data, lines)


def _collect_lines(node: yaml.Node, at: Location, lines: dict[Location, int], path: Path) -> None:
    if len(lines) > MOST_VALUES:  # a few lines of aliases can stand for any number
        raise ConfigError(f"{path}: stands for more than {MOST_VALUES:,} values: use fewer aliases")
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigError(f"{path}:{line}: a key must be plain text, not a list or mapping")
            place = (*at, key.value)
            if place in lines:
                dotted = ".".join(str(part) for part in place)
                raise ConfigError(
                    f"{path}:{line}: {dotted}: the key stands twice "
                    f"(first on line {lines[place]}): keep one"
                )
            lines[place] = line
            _collect_lines(value, place, lines, path)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines[(*at, index)] = value.start_mark.line + 1
            _collect_lines(value, (*at, index), lines, path)
    elif not is_encodable(node.value):
        line = node.start_mark.line + 1
        raise ConfigError(f"{path}:{line}: {node.value!r} holds half a character: write it whole")


def _describe_yaml_error(error: Exception) -> str:
    """The line that the parser stopped at, if it says so, and what is wrong there."""
    problem = str(getattr(error, "problem", None) or str(error).splitlines()[0])
    mark = getattr(error, "problem_mark", None)
    line = "" if mark is None else f":{mark.line + 1}"
    known = (words for start, words in PARSER_PROBLEMS.items() if problem.startswith(start))
    return f"{line}: not valid YAML: {next(known, problem)}"


def _suggest_file(path: Path) -> str:
    """YAML files with a similar name, in the same folder or among the experiments."""
    folders = dict.fromkeys([path.parent, Path("experiments")])
    files = [file for folder in folders for file in sorted(folder.glob("*.y*ml"))]
    by_stem = {file.stem: str(file) for file in reversed(files)}
    name = path.stem if path.suffix in {".yaml", ".yml"} else path.name
    close = did_you_mean(name, by_stem)
    for stem, file in by_stem.items():
        close = close.replace(repr(stem), repr(file))
    return close or ": check the path"


def parse_model(
    model: type[Model], data: object, where: Callable[[Location], str] | None = None
) -> Model:
    """Build ``model`` from ``data``; the first thing wrong becomes a one-line error.

    Args:
        model: A strict model.
        data: What was read.
        where: Turns the path of a value into the prefix of the message.

    Raises:
        ConfigError: Says where, what rule, what was given, what is allowed.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise make_config_error(error, data, where) from None


def make_config_error(
    error: ValidationError, data: object, where: Callable[[Location], str] | None = None
) -> ConfigError:
    """The first thing wrong in one line; arguments as for :func:`parse_model`."""
    location, first = _first_error(error, data)
    prefix = where(location) if where else ".".join(str(part) for part in location)
    message = _format_message(first)
    return ConfigError(f"{prefix}: {message}" if prefix else message)


def _first_error(error: ValidationError, data: object) -> tuple[Location, Any]:
    """Path and details of the first error."""
    errors: list[Any] = list(error.errors(include_url=False))
    places = [_locate_error(details, data) for details in errors]
    # Of the kinds that a value may be of, the one whose error lies deepest was meant.
    tried = [n for n, place in enumerate(places) if place[: len(places[0])] == places[0]]
    chosen = max(tried, key=lambda n: len(places[n]))
    return places[chosen], errors[chosen]


def _locate_error(error: Any, data: object) -> Location:  # noqa: ANN401 - as above
    """The path of an error through the data: pydantic adds names of the types it tried."""
    place: Location = ()
    for part in error["loc"]:
        if isinstance(data, Mapping):
            given = {str(key): value for key, value in data.items()}
            if str(part) in given or error["type"] == "missing":
                place, data = (*place, part), given.get(str(part))
        elif isinstance(data, list | tuple) and isinstance(part, int):
            place, data = (*place, part), data[part]
        elif error["type"] == "missing":  # of a method that is given by its name alone
            place = (*place, part)
    key = (error.get("ctx") or {}).get("key")
    return place if key is None else (*place, key)


def _format_message(error: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails is a TypedDict
    text = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] in {"unknown_key", "value_error"}:
        return text
    if error["type"] == "missing":
        return "is required"
    text = NEEDED.get(error["type"], text)
    return f"{text[0].lower()}{text[1:]}, given {error['input']!r:.200}"
