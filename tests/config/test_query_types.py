from __future__ import annotations

import pytest

from fusion_bench.config.models import parse_model
from fusion_bench.config.query_types import CONV_03_05, TypeWeights, split_by_type, type_of
from fusion_bench.errors import ConfigError


def test_the_published_table_by_name() -> None:
    assert parse_model(TypeWeights, "conv-03-05").root == CONV_03_05
    assert parse_model(TypeWeights, CONV_03_05).root == CONV_03_05


def test_building_it_leaves_the_published_table_alone() -> None:
    parse_model(TypeWeights, "conv-03-05").root["hybrid"]["keyword"] = 9.0
    assert CONV_03_05["hybrid"]["keyword"] == 0.33


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"local": {"a": 1.0}}, "weights for type 'hybrid' are required: unsure queries use them"),
        (
            {"hybrid": {"a": 1.0}, "local": {"a": 0.5, "b": 0.48}},
            r"local: the weights add up to 0\.98, and must add up to 1 ± 0\.01",
        ),
        ({"hybrid": {"a": 1.02}}, r"hybrid: the weights add up to 1\.02"),
        ({"hybrid": {"a": -1.0, "b": 2.0}}, r"hybrid\.a: input should be greater than or equal"),
        ("conv-03-06", "given 'conv-03-06'"),
    ],
)
def test_tables_that_break_a_rule(data: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_model(TypeWeights, data)


@pytest.mark.parametrize("total", [0.99, 1.0, 1.01])
def test_a_hundredth_of_tolerance(total: float) -> None:
    assert parse_model(TypeWeights, {"hybrid": {"a": 0.5, "b": total - 0.5}})


def test_a_strategy_that_is_off_weighs_0() -> None:
    table = parse_model(TypeWeights, {"hybrid": {"keyword": 0.5, "semantic": 0.5, "graph": 0.0}})
    assert table.root["hybrid"]["graph"] == 0


def test_an_unknown_type_counts_as_unsure() -> None:
    assert type_of("local", 1.0, {"hybrid"}) == "hybrid"
    assert type_of("local", 1.0, {"hybrid", "local"}) == "local"


def test_a_number_by_type_is_taken_apart_wherever_it_stands() -> None:
    data = {
        "name": "s",
        "fusion": {"k": 60, "weights": {"a": {"by_query_type": {"local": 0.2, "hybrid": 0.5}}}},
        "blend": {"beta": {"by_query_type": {"global": 0.9, "hybrid": 0.7}}},
    }
    found = split_by_type(data, ("fusion", "blend"))
    assert found["name"] == "s"
    assert found["fusion"] == {"k": 60, "weights": {"a": 0.5}}
    assert found["by_query_type"] == {
        "global": {"fusion": {"k": 60, "weights": {"a": 0.5}}, "blend": {"beta": 0.9}},
        "hybrid": {"fusion": {"k": 60, "weights": {"a": 0.5}}, "blend": {"beta": 0.7}},
        "local": {"fusion": {"k": 60, "weights": {"a": 0.2}}, "blend": {"beta": 0.7}},
    }
    assert data["blend"] == {"beta": {"by_query_type": {"global": 0.9, "hybrid": 0.7}}}


def test_the_published_table_by_name_as_weights() -> None:
    found = split_by_type({"fusion": {"weights": {"by_query_type": "conv-03-05"}}}, ("fusion",))
    weights = {name: one["fusion"]["weights"] for name, one in found["by_query_type"].items()}
    assert weights == CONV_03_05


@pytest.mark.parametrize("data", ["rrf", {"fusion": "rrf"}, {"fusion": {"k": 1}}, {"runs": ["a"]}])
def test_what_does_not_depend_on_the_type_stays(data: object) -> None:
    assert split_by_type(data, ("fusion", "blend")) is data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"fusion": {"k": {"by_query_type": {"local": 1}}}}, "with a value for 'hybrid'"),
        ({"fusion": {"k": {"by_query_type": 3}}}, "a mapping from query type to value is needed"),
        (
            {"fusion": {"k": {"by_query_type": {"hybrid": 1}}}, "by_query_type": {}},
            "stands in the system and inside it",
        ),
    ],
)
def test_values_by_type_that_break_a_rule(data: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        split_by_type(data, ("fusion",))
