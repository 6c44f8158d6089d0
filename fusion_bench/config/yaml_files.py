"""YAML: read without its surprises, with the line of each value; written for people.

YAML 1.1 reads ``0_005`` as 5, ``010`` as 8, ``1:30`` as 90 and ``0x1`` as 1. Nobody who writes one
of these into a configuration means that, so each is refused wherever it stands.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NoReturn

import yaml

from fusion_bench.config.models import RANK, Location
from fusion_bench.errors import ConfigError, did_you_mean
from fusion_bench.util.files import explain_error, open_regular_text
from fusion_bench.util.formatting import GREATEST, is_decimal, is_encodable, parse_whole, pluralize

#: Columns of a line, where a text has a blank to break it at.
WIDTH: Final = 100


def format_yaml(data: Any, *, width: int = WIDTH) -> str:  # noqa: ANN401 - whatever YAML has
    """The data as YAML, one key a line, with a line feed at the end."""
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=width)
    return text


def format_compact_yaml(data: Mapping[str, Any]) -> str:
    """Plain data of JSON's kinds as YAML, with each innermost mapping or list on one line."""
    separate = json.loads(json.dumps(data))  # YAML would write shared lists as aliases
    text: str = yaml.safe_dump(
        separate, default_flow_style=None, sort_keys=False, allow_unicode=True, width=math.inf
    )
    return text


TAG: Final = "tag:yaml.org,2002:"
MERGE: Final = f"{TAG}merge"
NO_ZEROS: Final = re.compile(r"[+-]?(0|[1-9]\d*)", re.ASCII)
#: Characters of a value that a message shows.
MOST_SHOWN: Final = 40
SPELLING: Final = "a number has plain digits, such as 12, 0.005 or 1e-3, and a text needs quotes"


class ValueProblem(yaml.MarkedYAMLError):
    """Valid YAML that no configuration can mean."""


class ValueLoader(yaml.SafeLoader):
    """Loads plain values; a number is what :mod:`fusion_bench.util.formatting` says."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """The next node, which has no tag of its own but ``!!str``.

        Raises:
            ValueProblem: It has one.
        """
        event = self.peek_event()  # type: ignore[no-untyped-call]
        tag = getattr(event, "tag", None)
        if tag not in {None, "!", f"{TAG}str"}:
            shown = str(tag).replace(TAG, "!!")
            raise _problem(event, f"the tag {shown} is not allowed: write the value without it")
        return super().compose_node(parent, index)

    def read_whole(self, node: yaml.ScalarNode) -> int:
        """A whole number of at most 64 bits."""
        if NO_ZEROS.fullmatch(node.value) is None:
            raise _refuse_number(node, SPELLING)
        try:
            return parse_whole(node.value)
        except OverflowError:
            raise _refuse_number(node, f"a whole number is at most {GREATEST}") from None

    def read_real(self, node: yaml.ScalarNode) -> float:
        """A finite number."""
        if not is_decimal(node.value):
            raise _refuse_number(node, SPELLING)
        if math.isinf(value := float(node.value)):
            raise _refuse_number(node, "a number is finite")
        return value


ValueLoader.add_constructor(f"{TAG}int", ValueLoader.read_whole)
ValueLoader.add_constructor(f"{TAG}float", ValueLoader.read_real)


def parse_yaml(text: str) -> Any:  # noqa: ANN401 - any YAML
    """The value of a YAML text.

    Raises:
        yaml.YAMLError: It is none, or says what no configuration can mean.
        ValueError: A date that is none.
    """
    return yaml.load(text, Loader=ValueLoader)  # noqa: S506 - a safe loader


def _refuse_number(node: yaml.ScalarNode, rule: str) -> ValueProblem:
    text = node.value if len(node.value) <= MOST_SHOWN else f"{node.value[:MOST_SHOWN]}…"
    return _problem(node, f"{rule}, given {text}")


def _problem(place: Any, text: str) -> ValueProblem:  # noqa: ANN401 - a node or an event
    return ValueProblem(problem=text, problem_mark=place.start_mark)


#: Limits of a YAML file, far above any that is written by hand.
MOST_CHARACTERS, MOST_VALUES = 2_000_000, 100_000
#: How the YAML parser's complaint begins → what to look for.
PARSER_PROBLEMS: Final = {
    r"found character '\t'": "a tab stands where a line is indented or a value begins: use spaces",
    "expected <block end>": "check how this line and those above are indented",
    "mapping values are not": "check how this line is indented, and quote a text that holds ': '",
    "could not find expected ':'": "a key without ': ' and a value, here or in the line above",
    "expected ',' or": "a bracket or brace is open, or a comma is missing, here or in a line above",
}


@dataclass(frozen=True, repr=False)
class Source:
    """Parsed YAML and where each of its values stands.

    Attributes:
        path: The file.
        data: Its content.
        lines: 1-based line of each key or item, by its path.
        overrides: Path of a value that replaces the file's → the option that set it, such as
            ``systems.rrf.fusion.k=20``.
        options: Path of a value that an option of its own set → that option, such as ``--split``.
    """

    path: Path
    data: Any
    lines: Mapping[Location, int] = field(default_factory=dict)
    overrides: Mapping[Location, str] = field(default_factory=dict)
    options: Mapping[Location, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """The file, and how much stands there."""
        changed = f", {pluralize(len(self.overrides), 'override')}" if self.overrides else ""
        return f"Source({str(self.path)!r}, {pluralize(len(self.data), 'entry')}{changed})"

    def where(self, location: Location) -> str:
        """``file:line: path`` of a value, by the deepest known part of its path.

        A value that an option set has ``--set path``, or the option's own name.
        """
        if location in self.options:
            return self.options[location]
        if any(self._is_set_by(place, location) for place in self.overrides):
            return f"--set {'.'.join(str(part) for part in location)}"
        known = [location[:n] for n in range(len(location), 0, -1) if location[:n] in self.lines]
        line = f":{self.lines[known[0]]}" if known else ""
        path = ".".join(str(part) for part in location)
        return f"{self.path}{line}: {path}" if path else f"{self.path}{line}"

    def with_options(self, options: Mapping[Location, str]) -> Source:
        """The same, where options of their own set some values: path → option."""
        return replace(self, options={**self.options, **options})

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
        with open_regular_text(path) as file:
            text = file.read(MOST_CHARACTERS + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file{_suggest_file(path)}") from None
    except (OSError, ValueError) as error:  # a folder, not UTF-8, or a path with a null byte
        raise ConfigError(f"{path}: cannot be read as UTF-8 text: {explain_error(error)}") from None
    if len(text) > MOST_CHARACTERS:
        raise ConfigError(
            f"{path}: longer than {MOST_CHARACTERS:,} characters: is it the right file?"
        )
    try:
        loader = ValueLoader(text)
        node = loader.get_single_node()
        lines: dict[Location, int] = {}
        if node is not None:
            _LineReader(path, loader, lines).read_node(node, ())
        data = None if node is None else loader.construct_document(node)
    except RecursionError:
        raise ConfigError(f"{path}: nests too deeply, or an alias contains itself") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date or number that is none
        raise ConfigError(f"{path}{_describe_yaml_error(error)}") from None
    if not isinstance(data, dict):
        given = "nothing" if data is None else f"a {type(data).__name__}"
        raise ConfigError(f"{path}: a mapping of keys to values is needed, given {given}")
    return Source(path, data, lines)


@dataclass(frozen=True)
class _LineReader:
    """Notes where each value stands, and refuses keys that stand twice."""

    path: Path
    loader: ValueLoader
    lines: dict[Location, int]

    def read_node(self, node: yaml.Node, at: Location) -> None:
        """Note the lines of the values in a node; ``at`` is its own path."""
        if len(self.lines) > MOST_VALUES:  # a few lines of aliases can stand for any number
            raise ConfigError(
                f"{self.path}: stands for more than {MOST_VALUES:,} values: use fewer aliases"
            )
        if isinstance(node, yaml.MappingNode):
            places: dict[object, Location] = {}
            for key, value in node.value:
                place = self._place_key(key, at, places)
                self.lines[place] = key.start_mark.line + 1
                self.read_node(value, place)
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                self.lines[(*at, index)] = value.start_mark.line + 1
                self.read_node(value, (*at, index))
        elif not is_encodable(node.value):
            self._refuse_text(node, "holds half a character: write it whole")
        elif "\0" in node.value:
            self._refuse_text(node, "holds a null byte: remove it")

    def _refuse_text(self, node: yaml.Node, problem: str) -> NoReturn:
        line = node.start_mark.line + 1
        raise ConfigError(f"{self.path}:{line}: {node.value!r} {problem}")

    def _place_key(self, key: yaml.Node, at: Location, places: dict[object, Location]) -> Location:
        """The path of a key; ``places`` holds those before it in its mapping, by value."""
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise ConfigError(
                f"{self.path}:{line}: a key must be plain text, not a list or mapping"
            )
        place = (*at, key.value)
        first = place if place in self.lines else places.setdefault(self._read_key(key), place)
        if place in self.lines or first != place:
            is_same = "the key stands twice" if first == place else f"the same key as {first[-1]}"
            raise ConfigError(
                f"{self.path}:{line}: {'.'.join(map(str, place))}: {is_same} "
                f"(first on line {self.lines[first]}): keep one"
            )
        return place

    def _read_key(self, key: yaml.ScalarNode) -> object:
        """What a key is: digits stand for a whole number, with quotes or without."""
        if key.tag == MERGE:
            return key.value
        value = self.loader.construct_object(key)
        return int(value) if isinstance(value, str) and RANK.fullmatch(value) else value


def _describe_yaml_error(error: Exception) -> str:
    """The line that the parser stopped at, if it says so, and what is wrong there."""
    problem = str(getattr(error, "problem", None) or str(error).splitlines()[0])
    mark = getattr(error, "problem_mark", None)
    line = "" if mark is None else f":{mark.line + 1}"
    if isinstance(error, ValueProblem):
        return f"{line}: {problem}"
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
