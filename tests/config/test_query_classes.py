"""Values by type or intent of a query."""

import pytest

from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.config.query_types import (
    BY_INTENT,
    BY_TYPE,
    CONV_03_05,
    TypeWeights,
    find_class_key,
    split_by_class,
    type_of,
)
from fusion_bench.errors import ConfigError


def test_a_number_by_type_is_taken_apart_wherever_it_stands() -> None:
    data = {
        "name": "s",
        "fusion": {"k": 60, "weights": {"a": {"by_query_type": {"local": 0.2, "hybrid": 0.5}}}},
        "blend": {"beta": {"by_query_type": {"global": 0.9, "hybrid": 0.7}}},
    }
    found = split_by_class(data, ("fusion", "blend"))
    assert found["name"] == "s"
    assert found["fusion"] == {"k": 60, "weights": {"a": 0.5}}
    assert found["by_query_type"] == {
        "global": {"fusion": {"k": 60, "weights": {"a": 0.5}}, "blend": {"beta": 0.9}},
        "hybrid": {"fusion": {"k": 60, "weights": {"a": 0.5}}, "blend": {"beta": 0.7}},
        "local": {"fusion": {"k": 60, "weights": {"a": 0.2}}, "blend": {"beta": 0.7}},
    }
    assert data["blend"] == {"beta": {"by_query_type": {"global": 0.9, "hybrid": 0.7}}}


def test_the_published_table_by_name_as_weights() -> None:
    found = split_by_class({"fusion": {"weights": {"by_query_type": "conv-03-05"}}}, ("fusion",))
    weights = {name: one["fusion"]["weights"] for name, one in found["by_query_type"].items()}
    assert weights == CONV_03_05


@pytest.mark.parametrize("data", ["rrf", {"fusion": "rrf"}, {"fusion": {"k": 1}}, {"runs": ["a"]}])
def test_what_does_not_depend_on_the_type_stays(data: object) -> None:
    assert split_by_class(data, ("fusion", "blend")) is data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"fusion": {"k": {"by_query_type": {"local": 1}}}}, "value for 'hybrid'"),
        ({"fusion": {"k": {"by_query_type": 3}}}, "from query type"),
        ({"fusion": {"k": {"by_query_type": {"hybrid": 1}}}, "by_query_type": {}}, "and inside it"),
        ({"fusion": {"k": {"by_intent": {"meta": 1}}}}, "value for 'default'"),
        ({"fusion": {"weights": {"by_intent": "conv-03-05"}}}, "from intent"),
        (
            {"fusion": {"k": {"by_intent": {"default": 1}}}, "by_query_type": {"hybrid": {}}},
            "exclude each other",
        ),
        (
            {"fusion": {"k": {"by_intent": {"default": {"by_query_type": {"hybrid": 1}}}}}},
            "mapping is inside",
        ),
    ],
)
def test_values_by_type_that_break_a_rule(data: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        split_by_class(data, ("fusion",))


def test_numbers_by_intent_are_those_of_one_key() -> None:
    data = {"fusion": {"k": {"by_intent": {"meta": 10, "default": 60}}}}
    assert split_by_class(data, ("fusion", "blend")) == {
        "fusion": {"k": 60},
        "by_intent": {"default": {"fusion": {"k": 60}}, "meta": {"fusion": {"k": 10}}},
    }
    assert find_class_key({"by_intent": 1}) is BY_INTENT
    assert find_class_key({"by_intent": 1, "k": 2}) is None
    assert find_class_key("by_intent") is None


@pytest.mark.parametrize(
    ("value", "confidence", "by_type", "by_intent"),
    [
        ("local", None, "local", "local"),
        ("local", 0.9, "local", "local"),
        ("local", 0.69, "hybrid", "local"),
        ("global", 0.9, "hybrid", "default"),
        (None, None, "hybrid", "default"),
    ],
)
def test_the_class_of_a_query(
    value: str | None, confidence: float | None, by_type: str, by_intent: str
) -> None:
    known = ("local", "hybrid", "default")
    assert BY_TYPE.class_of(value, confidence, known) == by_type
    assert BY_INTENT.class_of(value, confidence, known) == by_intent


class Weights(StrictModel):
    """A model with such a table."""

    table: TypeWeights


def read_table(data: object) -> TypeWeights:
    return parse_model(Weights, {"table": data}).table


def test_the_published_table_by_name_stays_as_it_is() -> None:
    assert read_table("conv-03-05") == CONV_03_05
    assert read_table(CONV_03_05) == CONV_03_05
    read_table("conv-03-05")["hybrid"]["keyword"] = 9.0
    assert CONV_03_05["hybrid"]["keyword"] == 0.33


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"local": {"a": 1.0}}, "type 'hybrid' are"),
        ({"hybrid": {"a": 1.0}, "local": {"a": 0.5, "b": 0.48}}, r"local: .* 0\.98, .* 1 ± 0\.01"),
        ({"hybrid": {"a": 1.02}}, r"hybrid: .* 1\.02"),
        ({"hybrid": {"a": -1.0, "b": 2.0}}, r"hybrid\.a: input"),
        ("conv-03-06", "given 'conv-03-06'"),
    ],
)
def test_tables_that_break_a_rule(data: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_table(data)


@pytest.mark.parametrize("total", [0.99, 1.0, 1.01])
def test_a_hundredth_of_tolerance(total: float) -> None:
    assert read_table({"hybrid": {"a": 0.5, "b": total - 0.5}})


def test_strategies_that_are_off_and_unknown_types() -> None:
    table = read_table({"hybrid": {"keyword": 0.5, "semantic": 0.5, "graph": 0.0}})
    assert table["hybrid"]["graph"] == 0
    assert type_of("local", 1.0, {"hybrid"}) == "hybrid"
    assert type_of("local", 1.0, {"hybrid", "local"}) == "local"
