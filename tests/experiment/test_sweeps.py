"""A list where one value belongs becomes one system a value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fusion_bench.config.yaml_files import Source
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.experiment import Experiment, read_experiment
from fusion_bench.experiment.overrides import MOST_SYSTEMS, expand_sweeps

PAIR = {"runs": ["a", "b"]}


def expanded(**systems: dict[str, Any]) -> dict[str, Any]:
    source, _ = expand_sweeps(Source(Path("e.yaml"), {"systems": systems}))
    result: dict[str, Any] = source.data["systems"]
    return result


def names(spec: dict[str, Any]) -> list[str]:
    return list(expanded(s={**PAIR, **spec}))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"fusion": {"method": "rrf", "k": [10, 60]}}, ["s k=10", "s k=60"]),
        ({"fusion": {"method": "rrf", "k": [10]}}, ["s k=10"]),
        ({"fusion": ["rrf", "combsum"]}, ["s fusion=rrf", "s fusion=combsum"]),
        ({"fusion": {"method": ["rrf", "wsum"]}}, ["s fusion=rrf", "s fusion=wsum"]),
        ({"depth": [10, None]}, ["s depth=10", "s depth=null"]),
        ({"depth": {"a": [10, 20]}}, ["s depth.a=10", "s depth.a=20"]),
        (
            {"fusion": {"method": "rrf", "weights": {"a": [0.3, 1]}}},
            ["s weights.a=0.3", "s weights.a=1"],
        ),
        (
            {"fusion": {"method": "convex", "normalize": ["max", {"method": "z_score"}]}},
            ["s normalize=max", "s normalize=z_score"],
        ),
        (
            {"fusion": {"method": "convex", "normalize": {"method": ["max", "sum"]}}},
            ["s normalize=max", "s normalize=sum"],
        ),
        (
            {"depth": [5, 6], "blend": {"method": "linear", "reranker": "c", "depth": [1, 2]}},
            [
                "s depth=5 blend.depth=1",
                "s depth=5 blend.depth=2",
                "s depth=6 blend.depth=1",
                "s depth=6 blend.depth=2",
            ],
        ),
        (
            {"fusion": {"method": "rrf", "k": {"by_query_type": {"hybrid": [1, 2]}}}},
            ["s k.hybrid=1", "s k.hybrid=2"],
        ),
        (
            {"by_query_type": {"hybrid": {"fusion": {"method": "rrf", "k": [1, 2]}}}},
            ["s hybrid.fusion.k=1", "s hybrid.fusion.k=2"],
        ),
    ],
)
def test_names_the_systems_by_their_values(spec: dict[str, Any], expected: list[str]) -> None:
    assert names(spec) == expected


def test_every_value_stands_in_its_place() -> None:
    spec = {**PAIR, "depth": [5, 9], "fusion": {"method": "rrf", "k": [1, 2]}}
    assert expanded(first=PAIR, s=spec, last=PAIR) == {
        "first": PAIR,
        "s depth=5 k=1": {**PAIR, "depth": 5, "fusion": {"method": "rrf", "k": 1}},
        "s depth=5 k=2": {**PAIR, "depth": 5, "fusion": {"method": "rrf", "k": 2}},
        "s depth=9 k=1": {**PAIR, "depth": 9, "fusion": {"method": "rrf", "k": 1}},
        "s depth=9 k=2": {**PAIR, "depth": 9, "fusion": {"method": "rrf", "k": 2}},
        "last": PAIR,
    }


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"runs": ["a"]},
        {"fusion": {"method": "rrf_v2", "bonus": {1: 0.1}}},
        {"fusion": {"method": "nothing", "k": [1, 2]}},  # reading it says what is wrong
        {"unknown": [1, 2]},
        {"weights_by_type": "conv-03-05"},
    ],
)
def test_what_is_no_sweep_stays(spec: dict[str, Any]) -> None:
    source = Source(Path("e.yaml"), {"systems": {"s": {**PAIR, **spec}, "odd": 3}})
    assert expand_sweeps(source) == (source, {})


@pytest.mark.parametrize("data", [{}, {"systems": []}, {"systems": None}])
def test_an_experiment_without_systems_stays(data: dict[str, Any]) -> None:
    source = Source(Path("e.yaml"), data)
    assert expand_sweeps(source) == (source, {})


@pytest.mark.parametrize(
    ("systems", "message"),
    [
        ({"s": {"depth": []}}, "e.yaml: systems.s.depth: an empty list"),
        ({"s": {"depth": [[1]]}}, "e.yaml: systems.s.depth: a list in a list"),
        ({"s": {"depth": [1, 1]}}, "e.yaml: systems.s.depth: 1 is listed twice: keep one"),
        (
            {"s": {"depth": [1, 2]}, "s depth=1": {}},
            "e.yaml: systems.s: its list stands for 's depth=1' too",
        ),
        ({"s": {"depth": [*range(1, 202)]}}, "e.yaml: systems: the lists stand for more than 200"),
        (
            {"s": {"depth": [*range(1, 151)]}, "t": {"depth": [*range(1, 151)]}},
            "e.yaml: systems: the lists stand for more than 200",
        ),
        (
            {"s": {"depth": [*range(1, 10**5)], "top_k": [*range(1, 10**5)]}},
            "e.yaml: systems: the lists stand for more than 200",
        ),
    ],
)
def test_a_sweep_that_breaks_a_rule(systems: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        expanded(**{name: {**PAIR, **spec} for name, spec in systems.items()})
    assert str(caught.value).startswith(message)


def test_as_many_systems_as_allowed() -> None:
    assert len(names({"depth": [*range(1, MOST_SYSTEMS + 1)]})) == MOST_SYSTEMS


def read(path: Path, text: str) -> Experiment:
    path.write_text(
        f"dataset: d\n{text}\nsystems:\n  one: {{runs: [a]}}\n"
        "  rrf:\n    runs: [a, b]\n    fusion: {method: rrf, k: [10, 60]}\n",
        encoding="utf-8",
    )
    return read_experiment(path)[0]


def test_an_experiment_with_a_sweep(tmp_path: Path) -> None:
    experiment = read(tmp_path / "e.yaml", "baseline: rrf k=60")
    assert [*experiment.systems] == ["one", "rrf k=10", "rrf k=60"]
    assert experiment.systems["rrf k=10"].name == "rrf k=10"
    assert experiment.systems["rrf k=10"].fusion.model_dump()["k"] == 10


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("baseline: rrf", "2: baseline"),
        ("baseline: one\ntune: {system: rrf}", "3: tune.system"),
        ("baseline: one\ngate: {system: rrf, checks: {AP: {max_drop: 0}}}", "3: gate.system"),
    ],
)
def test_a_sweep_is_no_single_system(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path / "e.yaml", text)
    message = "'rrf' is a sweep: name one of 'rrf k=10', 'rrf k=60'"
    assert str(caught.value) == f"{tmp_path / 'e.yaml'}:{place}: {message}"


def test_an_error_in_a_swept_system_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text(
        "dataset: d\nbaseline: one\nsystems:\n  one: {runs: [a]}\n"
        "  rrf:\n    runs: [a, b]\n    fusion:\n      method: rrf\n      k: [10, high]\n",
        encoding="utf-8",
    )
    with pytest.raises(ConfigError, match=r"e\.yaml:9:.*systems\.rrf.*k=high\.fusion\.k:"):
        read_experiment(path)
