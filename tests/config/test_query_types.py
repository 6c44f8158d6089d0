from __future__ import annotations

import pytest

from fusion_bench.config.models import parse_model
from fusion_bench.config.query_types import CONV_03_05, TypeWeights, type_of
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
