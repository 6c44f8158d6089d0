"""Numbers that differ per source: k of every kind of reciprocal rank fusion."""

from typing import Any

import numpy as np
import pytest

from fusion_bench.config.parameters import integer
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import Fusion, fusions
from tests.contract.cases import DATASETS, ROLES, SOURCES, aligned

RUNS = aligned(DATASETS[0])
LISTED_ROLES = [ROLES[name] for name in SOURCES]


def rrf(**options: Any) -> Fusion:  # noqa: ANN401 - as YAML
    return fusions.build({"method": "rrf"} | options)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "rrf"},
        {"method": "rrf", "normalize": "three_lists", "weights": {"dense": 2}},
        {"method": "rrf", "normalize": "max_possible"},
        {"method": "rrf_v2", "bonus_unit": "relative"},
        {"method": "rrf_v2", "bonus_unit": "relative", "bonus_scope": "question"},
        {"method": "rrf_v2", "bonus_unit": "relative", "bonus_scope": "per_source"},
    ],
    ids=str,
)
@pytest.mark.parametrize("k", [60, 7, 0.3])
def test_equal_k_for_each_source_gives_the_bits_of_one_k(options: dict[str, Any], k: float) -> None:
    one, many = (fusions.build(options | {"k": value}) for value in (k, dict.fromkeys(SOURCES, k)))
    many.check_sources(SOURCES, LISTED_ROLES)
    for compute in (Fusion.fuse, Fusion.max_possible):
        bits = [getattr(f, compute.__name__)(RUNS).tobytes() for f in (one, many)]
        assert bits[0] == bits[1]
    np.testing.assert_array_equal(one.score_terms(RUNS).terms, many.score_terms(RUNS).terms)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": {"graph": 1}}, "k: 'graph' fits"),
        ({"k": {"dense": 1, "semantic": 2}}, "k: 'dense' and 'semantic'"),
        (
            {"k": {"bm25": 20}, "normalize": "three_lists"},
            "three_lists divides",
        ),
        (
            {"method": "rrf_v2", "k": {"bm25": 20}, "bonus_unit": "relative"},
            r"relative counts in 1/\(k\+1\)",
        ),
    ],
)
def test_refuses_what_does_not_fit(options: dict[str, Any], message: str) -> None:
    fusion = rrf(**options)
    with pytest.raises(ConfigError, match=message):
        fusion.check_sources(SOURCES, LISTED_ROLES)
    system = System("s", SOURCES, fusion)
    [(location, error)] = system.find_misfits(ROLES, ())
    assert location == ("fusion",)
    assert isinstance(error, ConfigError)
    with pytest.raises(ConfigError, match=message):
        system.active_runs(RUNS)


def test_a_source_that_is_off_needs_no_common_k() -> None:
    off = rrf(k={"hyde": 1}, weights={"hyde": 0}, normalize="three_lists")
    off.check_sources(SOURCES, LISTED_ROLES)
    view = System("s", SOURCES, off).active_runs(RUNS)
    same = rrf(normalize="three_lists").fuse(view)
    np.testing.assert_array_equal(off.fuse(view), same)


@pytest.mark.parametrize(
    ("k", "message"),
    [
        ({"bm25": -1}, r"k\.bm25: input"),
        ({"bm25": 1001}, r"k\.bm25: input"),
        ({"bm25": "x"}, r"k\.bm25: input"),
        ({"bm25": float("nan")}, r"k\.bm25: input"),
        ([1, 2], "k: input"),
    ],
)
def test_values_that_break_a_rule(k: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        rrf(k=k)


def test_a_search_has_one_k_or_one_a_source() -> None:
    assert rrf().space(SOURCES)[0] == integer("k", 1, 1000, log=True)
    for method in ("rrf", "rrf_v2"):
        fusion = fusions.build({"method": method, "k": {"keyword": 20}})
        found = [p for p in fusion.space(SOURCES) if p.path.startswith("k")]
        assert found == [integer(f"k.{name}", 1, 1000, log=True) for name in SOURCES]
    assert rrf().model_dump_json() == '{"method":"rrf","weights":{},"k":60,"normalize":"none"}'
