"""ISR, RBC and Borda: the examples of their docstrings, their greatest scores, what they refuse."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fusion_bench.config.parameters import real
from fusion_bench.errors import ConfigError
from fusion_bench.methods.fuse import fusions
from tests.methods.fuse.test_fuse import SOURCES, view


def scores(config: object, **lists: dict[str, float]) -> dict[str, float]:
    runs = view(**lists)
    fused = fusions.build(config).fuse(runs).tolist()
    return {runs.vocabulary[d]: x for d, x in zip(runs.documents, fused, strict=True)}


LISTS = {"bm25": {"a": 3.0, "b": 2.0, "c": 1.0}, "dense": {"b": 2.0, "a": 1.0}}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("isr", {"a": 2.5, "b": 2.5, "c": 1 / 9}),
        ("log_isr", {"a": 1.25 * math.log(2), "b": 1.25 * math.log(2), "c": 0}),
        ({"method": "logn_isr", "sigma": 1}, {"a": 1.25 * math.log(3), "c": math.log(2) / 9}),
        ({"method": "isr", "weights": {"dense": 2}}, {"a": 2 * (1 + 2 / 4), "b": 2 * 2.25}),
        ({"method": "rbc", "phi": 0.5}, {"a": 0.75, "b": 0.75, "c": 0.125}),
        ({"method": "rbc", "phi": 0.5, "weights": {"bm25": 3}}, {"a": 1.75, "c": 0.375}),
        ("borda", {"a": 3 + 2, "b": 2 + 3, "c": 1 + 1}),
        ({"method": "weighted_borda", "weights": {"dense": 0.5}}, {"a": 3 + 1, "c": 1 + 0.5}),
    ],
    ids=str,
)
def test_worked_examples(config: object, expected: dict[str, float]) -> None:
    found = scores(config, **LISTS)
    assert {d: found[d] for d in expected} == pytest.approx(expected, rel=1e-15)


def test_borda_divides_what_is_left_among_the_others() -> None:
    found = scores("borda", bm25={"a": 2.0, "b": 1.0}, dense={"c": 2.0, "d": 1.0})
    assert found == {"a": 4 + 1.5, "b": 3 + 1.5, "c": 4 + 1.5, "d": 3 + 1.5}


@pytest.mark.parametrize(
    ("config", "greatest"),
    [
        ("isr", 9.0),
        ("log_isr", 3 * math.log(3)),
        ({"method": "logn_isr", "weights": {"bm25": 2}}, 4 * math.log(3.01)),
        ({"method": "rbc", "phi": 0.5, "weights": {"bm25": 2}}, 2.0),
        ("borda", 9.0),
        ({"method": "weighted_borda", "weights": {"hyde": 0.5}}, 7.5),
        ("condorcet", 3.0),
        ({"method": "softmax_rrf", "k": {"bm25": 0}}, 1 + 2 / 61),
    ],
    ids=str,
)
def test_greatest_possible_scores(config: object, greatest: float) -> None:
    runs = view(bm25={"a": 4.0, "b": 1.0}, dense={"b": -3.0}, hyde={"c": -5.0})
    assert fusions.build(config).max_possible(runs)[0] == pytest.approx(greatest, rel=1e-15)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"method": "rbc", "phi": 0}, "phi: input should be greater than 0"),
        ({"method": "rbc", "phi": 1}, "phi: input should be less than 1"),
        ({"method": "rbc", "phi": "0.5"}, "phi: input should be a valid number"),
        ({"method": "logn_isr", "sigma": 1.1}, "sigma: input should be less than or equal to 1"),
        ({"method": "isr", "k": 60}, "unknown key 'k'"),
        ({"method": "pos_fuse", "weights": {"a": 1}}, "unknown key 'weights'"),
    ],
)
def test_values_that_break_a_rule(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fusions.build(config)


def test_what_a_search_may_change() -> None:
    weights = tuple(real(f"weights.{name}", 0.0, 2.0) for name in SOURCES)
    spaces = {
        "isr": weights,
        "logn_isr": (real("sigma", 0.01, 1.0), *weights),
        "rbc": (real("phi", 0.5, 0.99), *weights),
        "borda": weights,
        "condorcet": weights,
    }
    assert {name: fusions.build(name).space(SOURCES) for name in spaces} == spaces
