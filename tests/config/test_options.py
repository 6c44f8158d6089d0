"""The options of a command, described once by a class."""

from collections.abc import Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import Annotated

import pytest

from fusion_bench.config.options import Argument, File, Name, Option, Options, list_options


class Shared(Options):
    """Options that several have.

    Attributes:
        json: Print JSON.
    """

    json: bool = False


class First(Options):
    """What another class has.

    Attributes:
        source: Where
            it is.
    """

    source: Annotated[Path, Argument("SOURCE")]


class Command(First, Shared):
    """Options of a command.

    Attributes:
        systems: One; repeatable.
        json: Print JSON here.
    """

    systems: Annotated[Sequence[Name], Option("--system")] = ()
    max_cost: float | None = None
    out: File | None = None


def find_pair(systems: Sequence[str], json: bool, depth: int = 1) -> tuple[object, ...]:
    return systems, json, depth


def test_options_have_the_order_of_their_classes_and_the_help_of_their_docstring() -> None:
    names = [each.name for each in list_options(Command)]
    assert names == ["systems", "max_cost", "out", "source", "json"]
    texts = {each.name: each.help for each in list_options(Command)}
    assert texts["source"] == "Where it is."
    assert texts["json"] == "Print JSON here."
    assert [each.help for each in list_options(Shared)] == ["Print JSON."]
    labels = [each.label for each in list_options(Command)]
    assert labels == ["--system", "--max-cost", "--out", "SOURCE", "--json"]


def test_what_has_no_default_must_be_given() -> None:
    defaults = {each.name: each.default for each in list_options(Command)}
    assert defaults["source"] is MISSING
    assert defaults["systems"] == ()
    with pytest.raises(TypeError, match="source"):
        Command()  # type: ignore[call-arg] # what is tried


def test_given_options_are_those_with_another_value_than_their_default() -> None:
    options = Command(source=Path("a"), systems=("x", "y"), max_cost=2.0)
    assert options.given("systems", "max_cost", "out") == {
        "--system": ("x", "y"),
        "--max-cost": 2.0,
    }
    assert options.given("out") == {}
    assert list(options.words("max_cost", "systems")) == [
        *("--max-cost", 2.0),
        *("--system", "x", "--system", "y"),
    ]


def test_a_function_is_called_with_the_options_that_it_has_parameters_for() -> None:
    options = Command(source=Path("a"), systems=("x",))
    assert options.call(find_pair) == (("x",), False, 1)
    assert options.call(find_pair, ["z"], json=True) == (["z"], True, 1)
