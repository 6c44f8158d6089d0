"""Strict models: their errors, numbers, limits, JSON schema."""

import os
import re
from datetime import date
from pathlib import Path
from threading import Event, Thread
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Field, RootModel
from pydantic_core import core_schema

from fusion_bench.config import models
from fusion_bench.config.json_records import build_schema
from fusion_bench.config.models import (
    ByRank,
    StrictModel,
    StrictNumbers,
    parse_model,
)
from fusion_bench.config.yaml_files import Source, read_yaml
from fusion_bench.errors import ConfigError
from fusion_bench.util.environment import NO_PLUGINS

PLAIN_DIGITS = "a number has plain digits, such as 12, 0.005 or 1e-3, and a text needs quotes"


class Inner(StrictModel):
    size: int | dict[str, int] = 1
    items: tuple[int, ...] = ()


class Outer(StrictModel):
    inner: Inner = Inner()
    names: dict[int, float] = Field(default_factory=dict)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"iner": {}}, "iner: unknown key"),
        ({"inner": {"zzz": 1}}, "inner.zzz: unknown"),
        ({1: 2}, "1: unknown key '1'"),
        ({True: 2}, "True: unknown key"),
        ({"inner": {"size": "x"}}, "inner.size: input"),
        ({"inner": {"size": {"a": "x"}}}, "inner.size.a: "),
        ({"inner": {"items": [1, "x"]}}, "inner.items.1: "),
        ({"inner": 3}, "inner: a mapping"),
        ({"names": {1: "x"}}, "names.1: input"),
        ({"names": {"x": 1}}, "names.x: input"),
        ([], "a mapping of"),
    ],
)
def test_the_message_names_the_place_and_the_rule(data: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_model(Outer, data)
    assert str(caught.value).startswith(message)


def test_a_model_is_frozen_and_has_the_schema_of_plain_fields() -> None:
    with pytest.raises(ValueError, match="frozen"):
        setattr(Inner(), "size", 3)  # noqa: B010 - a type checker refuses the plain assignment
    properties = Values.model_json_schema()["properties"]
    assert properties["whole"] == {"default": 1, "minimum": 1, "title": "Whole", "type": "integer"}
    assert properties["switch"]["type"] == "boolean"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_lines_and_aliases_of_yaml(tmp_path: Path) -> None:
    path = written(tmp_path, "a:\n  b:\n    - c: 1\n    - d: 2\n")
    source = read_yaml(path)
    assert source.data == {"a": {"b": [{"c": 1}, {"d": 2}]}}
    assert source.where(("a", "b", 1, "d")) == f"{path}:4: a.b.1.d"
    assert source.where(("a", "b", 1, "e", "f")) == f"{path}:4: a.b.1.e.f"
    assert source.where(("x",)) == f"{path}: x"
    assert source.where(()) == str(path)
    assert Source(path, {}).where(("a",)) == f"{path}: a"
    source = read_yaml(written(tmp_path, "a: &x {k: 1}\nb: *x\n"))
    assert source.data == {"a": {"k": 1}, "b": {"k": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", ":3: a: the key"),
        ("a:\n  b: 1\n  b: 1\n", ":3: a.b: the key"),
        ("? [x]\n: 1\n", ":1: a key must"),
        ("a: [1\n", ":2: not valid YAML: a "),
        ("a:\n  b:\n    c: 1\n   d: 2\n", ":4: not valid YAML: "),
        ("a: x\n  b: 2\n", ":2: not valid YAML: "),
        ("a:\n  b: [1]\n    c: 2\n", ":3: not valid YAML: "),
        ("a: b: c\n", ":1: not valid YAML: "),
        ("a: 'b' c\n", ":1: not valid YAML: "),
        ("a:\n\tb: 1\n", ":2: not valid YAML: "),
        ("a: 1\nb\nc: 2\n", ":3: not valid YAML: "),
        ("a: 2026-13-45\n", ": not valid YAML"),
        ("a: !!python/object:os.system x\n", ":1: the tag !!python"),
        ("a: 1\nb: !!set {x, y}\n", ":2: the tag !!set"),
        ("a: !!bool maybe\n", ":1: the tag !!bool"),
        ("a:\n  1: x\n  1.0: y\n", ":3: a.1.0: the same"),
        ("a: {1: x, +1: y}\n", ":1: a.+1: the same"),
        ("a: {1: x, true: y}\n", ":1: a.true: the"),
        ("a: {'1': x, +1: y}\n", ":1: a.+1: the same"),
        ("a: {yes: x, on: y}\n", ":1: a.on: the"),
        ("a: {1: x, 0x1: y}\n", f":1: {PLAIN_DIGITS}, given 0x1"),
        ("a: {1: x, 0b1: y}\n", f":1: {PLAIN_DIGITS}, given 0b1"),
        ("a: 1\nb: 0_005\n", f":2: {PLAIN_DIGITS}, given 0_005"),
        ("a: 1_000.5\n", f":1: {PLAIN_DIGITS}, given 1_000.5"),
        ("a: 1:30\n", f":1: {PLAIN_DIGITS}, given 1:30"),
        ("a: 1:30.5\n", f":1: {PLAIN_DIGITS}, given 1:30.5"),
        ("a: 010\n", f":1: {PLAIN_DIGITS}, given 010"),
        ("a: .nan\n", f":1: {PLAIN_DIGITS}, given .nan"),
        ("a: -.inf\n", f":1: {PLAIN_DIGITS}, given -.inf"),
        ("a: 1.0e+999\n", ":1: a number is finite"),
        (f"a: {2**63}\n", f":1: a whole number is at most {2**63 - 1}, given {2**63}"),
        (f"a: {'9' * 5000}\n", f":1: a whole number is at most {2**63 - 1}, given {'9' * 40}…"),
        ("", ": a mapping"),
        ("7\n", ": a mapping"),
        ("a: &x [*x]\n", ": nests too deeply"),
        ("a: " + "[" * 700 + "]" * 700, ": nests too deeply"),
        ('a: "\\ud800"\n', ":1: '\\ud800' holds half"),
    ],
)
def test_yaml_that_cannot_be_meant(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_yaml(path)
    assert str(caught.value).startswith(f"{path}{message}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("12", 12), ("-0", 0), ("+3", 3), ("0.5", 0.5), (".5", 0.5), ("5.", 5.0)],
        *[("1.5e+3", 1500.0), ("1e-3", "1e-3"), ("'0_005'", "0_005"), ("'1:30'", "1:30")],
        *[("2026-01-31", date(2026, 1, 31)), ("!!str 5", "5"), ("! 'x'", "x"), ("089", "089")],
        *[("yes", True), ("~", None), ("[1, a]", [1, "a"]), ("{1: a}", {1: "a"})],
        (f"-{2**63 - 1}", 1 - 2**63),
    ],
)
def test_plain_values_are_what_they_look_like(text: str, value: object, tmp_path: Path) -> None:
    data = read_yaml(written(tmp_path, f"a: {text}\n")).data
    assert (data, type(data["a"])) == ({"a": value}, type(value))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml: no "):
        read_yaml(tmp_path / "absent.yaml")
    with pytest.raises(ConfigError, match="UTF-8 text:"):
        read_yaml(tmp_path)
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("name: é".encode("latin-1"))
    with pytest.raises(ConfigError, match="UTF-8 text"):
        read_yaml(latin)


class StrictInner(StrictModel):
    number: float = 0.5


class Weights(StrictNumbers, RootModel[dict[str, float]]):
    pass


class Values(StrictModel):
    real: float | None = None
    bounded: Annotated[float, Field(ge=0, le=1)] = 0.5
    whole: Annotated[int, Field(ge=1)] = 1
    switch: bool = False
    reals: tuple[float, ...] = ()
    pairs: dict[str, tuple[int, float]] = Field(default_factory=dict)
    depth: int | dict[str, int] = 1
    share: float | Literal["auto"] = "auto"
    choice: float | int | str | bool | None = None
    by_rank: ByRank[float] = Field(default_factory=dict)
    inner: StrictInner = StrictInner()
    weights: Weights | None = None
    default: float = 1.0
    metadata: float = 1.0


REFUSED: list[tuple[str, Any]] = [
    *[
        (key, value)
        for key in ("real", "bounded", "share", "default", "metadata")
        for value in (True, "1", "0_1", "１", "nan", "0x1", " 1e0", "1e0 ", b"1", 10**400, [1])
    ],
    *[
        (key, value)
        for key in ("whole", "depth")
        for value in (True, "60", "1e1", b"1", 1.5, 2**63, 10**400, float("nan"))
    ],
    *[("switch", value) for value in (1, 0, "true", "yes", "on", 1.0)],
    *[("reals", [value]) for value in (True, "1", 10**400)],
    *[("pairs", {"a": pair}) for pair in ([True, 1.0], [1, "1"], [1, False])],
    ("depth", {"a": True}),
    *[("by_rank", {key: 0.5}) for key in (True, 1.0, "1.0", "+1", "01", "1_0", "１", 0, 2**64)],
    ("by_rank", {1: True}),
    ("inner", {"number": "1"}),
    *[("weights", {"a": value}) for value in (True, "1")],
]


@pytest.mark.parametrize(("key", "value"), REFUSED)
def test_what_is_no_number_is_refused(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"^{key}"):
        parse_model(Values, {key: value})


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("real", 3, 3.0),
        ("real", np.float32(0.5), 0.5),
        ("real", "1e-3", 0.001),
        ("share", "2.5E-1", 0.25),
        ("whole", 2.0, 2),
        ("whole", np.int64(7), 7),
        ("depth", {"a": 2}, {"a": 2}),
        ("choice", "1e-3", "1e-3"),
        ("choice", True, True),
        ("choice", 3, 3),
        ("choice", 3.0, 3.0),
        ("by_rank", {3: 0.5, 1: 1}, {1: 1.0, 3: 0.5}),
        ("by_rank", {"3": 0.5}, {3: 0.5}),
        ("switch", True, True),
    ],
)
def test_what_is_one_is_read(key: str, value: object, read: object) -> None:
    parsed = getattr(parse_model(Values, {key: value}), key)
    assert (parsed, type(parsed)) == (read, type(read))


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "performance.md"


def test_the_page_has_every_limit() -> None:
    _, _, table = PAGE.read_text(encoding="utf-8").partition("## Limits of settings")
    stated = {
        int(text.replace(",", "")) for text in re.findall(r"\| ([\d,]+) \|$", table, re.MULTILINE)
    }
    assert stated == {value for name, value in vars(models).items() if name.startswith("MOST_")}
    assert len(re.findall(r"\| [\d,]+ \|$", table, re.MULTILINE)) == 5


class Part(BaseModel):
    """A part.

    Attributes:
        size: How large; ``None`` where
            nobody measured.
    """

    model_config = ConfigDict(extra="forbid")
    size: float | None = None


class Whole(BaseModel):
    """A whole.

    Attributes:
        parts: Its parts.
    """

    model_config = ConfigDict(extra="forbid")
    format: Literal["whole"] = "whole"
    format_version: int = 3
    parts: tuple[Part, ...] = ()


def errors(**changed: object) -> list[str]:
    record: dict[str, Any] = Whole(parts=(Part(),)).model_dump(mode="json") | changed
    found = Draft202012Validator(build_schema(Whole)).iter_errors(record)
    return [error.json_path for error in found]


def test_the_schema_is_one_and_holds_records_to_their_keys_and_format() -> None:
    schema = build_schema(Whole)
    Draft202012Validator.check_schema(schema)
    assert schema["description"] == "A whole."
    assert schema["properties"]["parts"]["description"] == "Its parts."
    part = schema["$defs"]["Part"]
    assert part["description"] == "A part."
    assert part["properties"]["size"]["description"] == "How large; `null` where nobody measured."
    assert errors() == []
    assert errors(parts=[{"size": 2.5}]) == []
    assert errors(parts=[{}]) == ["$.parts[0]"]
    assert errors(parts=[{"size": "large"}]) == ["$.parts[0].size"]
    assert errors(more=1) == ["$"]
    assert errors(format="other") == ["$.format"]
    assert errors(format_version=2) == ["$.format_version"]


@pytest.mark.parametrize("given", [None, "other"])
def test_only_our_models_are_completed_without_plugins(
    monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    monkeypatch.delenv(NO_PLUGINS.name, raising=False)
    if given is not None:
        monkeypatch.setenv(NO_PLUGINS.name, given)
    switches = []

    class Noted:
        @classmethod
        def __get_pydantic_core_schema__(cls, *_: object) -> core_schema.CoreSchema:
            switches.append(os.environ.get(NO_PLUGINS.name))
            return core_schema.int_schema()

    class Ours(StrictModel):
        size: Annotated[int, Noted]

    class Theirs(BaseModel):
        size: Annotated[int, Noted]

    assert Ours(size=1).size == Theirs(size=1).size
    assert switches == [given, "__all__"]  # theirs at once, ours when it is first used
    assert os.environ.get(NO_PLUGINS.name) == given


def test_threads_that_complete_models_leave_the_variable_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(NO_PLUGINS.name, raising=False)
    second_began, first_ended = Event(), Event()

    class First:
        @classmethod
        def __get_pydantic_core_schema__(cls, *_: object) -> core_schema.CoreSchema:
            second_began.wait(0.2)
            return core_schema.int_schema()

    class Second:
        @classmethod
        def __get_pydantic_core_schema__(cls, *_: object) -> core_schema.CoreSchema:
            second_began.set()
            first_ended.wait(5)
            return core_schema.int_schema()

    class Slow(StrictModel):
        size: Annotated[int, First]

    class Late(StrictModel):
        size: Annotated[int, Second]

    late = Thread(target=Late, kwargs={"size": 1})
    completing = Thread(target=Slow, kwargs={"size": 1})
    completing.start()
    late.start()
    completing.join()
    first_ended.set()
    late.join()
    assert NO_PLUGINS.name not in os.environ
