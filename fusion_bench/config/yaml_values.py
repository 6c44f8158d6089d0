"""The YAML parser: plain values without YAML's surprises, and where each of them stands.

YAML 1.1 reads ``0_005`` as 5, ``010`` as 8, ``1:30`` as 90 and ``0x1`` as 1. Nobody who writes one
of these into a configuration means that, so each is refused wherever it stands.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import yaml

from fusion_bench.config.models import RANK, Location
from fusion_bench.errors import ConfigError
from fusion_bench.util.formatting import GREATEST, is_decimal, is_encodable, parse_whole

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


#: Values of a YAML file, far above any that is written by hand.
MOST_VALUES: Final = 100_000
#: How the YAML parser's complaint begins → what to look for.
PARSER_PROBLEMS: Final = {
    r"found character '\t'": "a tab stands where a line is indented or a value begins: use spaces",
    "expected <block end>": "check how this line and those above are indented",
    "mapping values are not": "check how this line is indented, and quote a text that holds ': '",
    "could not find expected ':'": "a key without ': ' and a value, here or in the line above",
    "expected ',' or": "a bracket or brace is open, or a comma is missing, here or in a line above",
}


def load_document(path: Path, text: str) -> tuple[Any, dict[Location, int]]:
    """The value of a file's text, and the 1-based line of each key or item by its path.

    Args:
        path: The file, for messages.
        text: What stands in it.

    Raises:
        ConfigError: Not YAML, a repeated key, or what no configuration can mean.
    """
    try:
        loader = ValueLoader(text)
        node = loader.get_single_node()
        lines: dict[Location, int] = {}
        if node is not None:
            _LineReader(path, loader, lines).read_node(node, ())
        return None if node is None else loader.construct_document(node), lines
    except RecursionError:
        raise ConfigError(f"{path}: nests too deeply, or an alias contains itself") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date or number that is none
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f":{mark.line + 1}"
        problem = str(getattr(error, "problem", None) or str(error).splitlines()[0])
        if not isinstance(error, ValueProblem):
            known = (words for start, words in PARSER_PROBLEMS.items() if problem.startswith(start))
            problem = f"not valid YAML: {next(known, problem)}"
        raise ConfigError(f"{path}{line}: {problem}") from None


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
                f"{self.path}: expands to more than {MOST_VALUES:,} values: use fewer aliases"
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
            is_same = "the key appears twice" if first == place else f"the same key as {first[-1]}"
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
