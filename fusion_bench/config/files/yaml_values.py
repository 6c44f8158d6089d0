"""YAML without its surprises: numbers in plain digits, no tags, no two keys of one value.

YAML 1.1 reads ``0_005`` as 5, ``010`` as 8, ``1:30`` as 90 and ``0x1`` as 1. Nobody who writes one
of these into a configuration means that, so each is refused wherever it stands.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import yaml

from fusion_bench.util.decimal_numbers import GREATEST, is_decimal, parse_whole

TAG: Final = "tag:yaml.org,2002:"
MERGE: Final = f"{TAG}merge"
NO_ZEROS: Final = re.compile(r"[+-]?(0|[1-9]\d*)", re.ASCII)
#: Characters of a value that a message shows.
MOST_SHOWN: Final = 40
SPELLING: Final = "a number has plain digits, such as 12, 0.005 or 1e-3, and a text needs quotes"


class ValueProblem(yaml.MarkedYAMLError):
    """Valid YAML that no configuration can mean."""


class ValueLoader(yaml.SafeLoader):
    """Loads plain values; a number is what :mod:`fusion_bench.util.decimal_numbers` says."""

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
