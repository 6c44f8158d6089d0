"""What pydantic would take for a number or a switch is an error in every model."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import Field, RootModel

from fusion_bench.config.models import ByRank, StrictModel, StrictNumbers, parse_model
from fusion_bench.errors import ConfigError


class Inner(StrictModel):
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
    inner: Inner = Inner()
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


def test_the_schema_is_that_of_plain_fields() -> None:
    properties = Values.model_json_schema()["properties"]
    assert properties["whole"] == {"default": 1, "minimum": 1, "title": "Whole", "type": "integer"}
    assert properties["switch"]["type"] == "boolean"
