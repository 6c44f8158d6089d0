"""Methods by name: a new method is one file."""

from __future__ import annotations

import pytest

from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.methods.fuse import fusions
from fusion_bench.methods.fuse.rrf import RRF


def test_a_method_is_built_from_its_name_or_a_mapping() -> None:
    assert fusions.build("rrf") == RRF()
    assert fusions.build({"method": "rrf", "k": 20}) == RRF(k=20)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ("rff", UnknownNameError, "unknown fusion method 'rff'; did you mean 'rrf'?"),
        ({"method": ["rrf"]}, UnknownNameError, "unknown fusion method \"['rrf']\""),
        ({"k": 1}, ConfigError, f"'method' is required (known: {', '.join(fusions.load_all())})"),
        ({}, ConfigError, "'method' is required"),
        (None, ConfigError, "a fusion method is a name or a mapping with 'method', given None"),
        ({"method": "rrf", "k": -1}, ConfigError, "k: input should be greater than or equal to 0"),
        ({"method": "rrf", "kk": 1}, ConfigError, "kk: unknown key 'kk'"),
    ],
)
def test_what_nothing_can_be_built_from(data: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        fusions.build(data)
    assert str(caught.value).startswith(message)


def test_a_field_takes_a_built_model_as_it_is() -> None:
    model = RRF(k=3)
    assert fusions.validate_field(model) is model
