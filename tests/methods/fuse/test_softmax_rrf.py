"""Reciprocal rank fusion weighted by a softmax of each list's scores."""

from __future__ import annotations

import math

import pytest

from fusion_bench.config.parameters import integer, real
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.methods.fuse import fusions
from tests.methods.fuse.test_fuse import SOURCES, view
from tests.methods.fuse.test_rank_methods import scores

#: The numbers of its source.
PUBLISHED = {
    "method": "softmax_rrf",
    "weights": {"dense": 0.7, "bm25": 0.3},
    "temperature": {"dense": 0.8, "bm25": 2.0},
    "rank_decay": {"dense": 0.02, "bm25": 0.05},
}


def test_the_example_of_the_docstring() -> None:
    config = {"method": "softmax_rrf", "rank_decay": 0, "weights": {"bm25": 3}}
    found = scores(config, bm25={"a": 7.0, "b": 7.0})
    assert sorted(found.values()) == pytest.approx([0.5 * 3 / 62, 0.5 * 3 / 61], rel=1e-15)


def test_the_numbers_of_its_source() -> None:
    dense, bm25 = {"a": 0.9, "b": 0.6}, {"b": 11.0, "c": 9.0, "a": 4.0}
    found = scores(PUBLISHED, dense=dense, bm25=bm25)
    in_dense = [math.exp(0.9 / 0.8 - 0.02), math.exp(0.6 / 0.8 - 0.04)]
    in_bm25 = [math.exp(11 / 2 - 0.05), math.exp(9 / 2 - 0.10), math.exp(4 / 2 - 0.15)]
    expected = {
        "a": in_dense[0] / sum(in_dense) * 0.7 / 61 + in_bm25[2] / sum(in_bm25) * 0.3 / 63,
        "b": in_dense[1] / sum(in_dense) * 0.7 / 62 + in_bm25[0] / sum(in_bm25) * 0.3 / 61,
        "c": in_bm25[1] / sum(in_bm25) * 0.3 / 62,
    }
    assert found == pytest.approx(expected, rel=1e-14)


def test_a_low_temperature_keeps_the_order_of_a_list() -> None:
    crowd = {f"d{n:03}": float(-n) for n in range(300)}
    config = {"method": "softmax_rrf", "temperature": 0.01}
    found = scores(config, bm25=crowd)
    assert sorted(found, key=lambda d: -found[d]) == sorted(crowd)
    assert min(found.values()) > 0


def test_scores_too_large_for_the_temperature() -> None:
    runs = view(bm25={"a": 1e307, "b": 1.0})
    with pytest.raises(AlignmentError, match=r"'bm25'.*1e\+307,"):
        fusions.build({"method": "softmax_rrf", "temperature": 1e-6}).fuse(runs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, "temperature: input should be greater than or equal to 0.000001"),
        ({"temperature": {"bm25": 0}}, r"temperature\.bm25: input should be greater than"),
        ({"rank_decay": -1}, "rank_decay: input should be greater than or equal to 0"),
    ],
)
def test_values_that_break_a_rule(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fusions.build({"method": "softmax_rrf", **options})


def test_each_number_is_tuned_for_all_sources_or_for_each() -> None:
    config = {"method": "softmax_rrf", "temperature": {"bm25": 2.0}}
    assert fusions.build(config).space(SOURCES)[:5] == (
        integer("k", 1, 1000, log=True),
        *(real(f"temperature.{name}", 0.01, 100.0, log=True) for name in SOURCES),
        real("rank_decay", 0.0, 1.0),
    )


def test_a_number_that_fits_no_source_is_refused() -> None:
    fusion = fusions.build({"method": "softmax_rrf", "rank_decay": {"graph": 1}})
    with pytest.raises(ConfigError, match="rank_decay: 'graph'"):
        fusion.check_sources(("bm25",), [frozenset()])
