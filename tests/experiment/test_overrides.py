"""Values that the command line sets, and sweeps over values."""

from pathlib import Path
from typing import Any

import pytest

from fusion_bench.config.yaml_files import Source
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.experiment import Experiment, read_experiment
from fusion_bench.experiment.overrides import MOST_SYSTEMS, apply_overrides, expand_sweeps

DATA: dict[str, Any] = {
    "dataset": "d",
    "measures": ["nDCG@10"],
    "baseline": "one",
    "systems": {
        "one": {"runs": ["a"]},
        "rrf 0.5=x": {"runs": ["a", "b"], "fusion": {"method": "rrf", "k": 60}},
        "name": {"runs": ["a", "b"], "fusion": "convex", "depth": 10},
        "bonus": {"runs": ["a"], "fusion": {"method": "rrf_v2", "bonus": {1: 0.05}}},
    },
}


def changed(*overrides: str) -> dict[str, Any]:
    data: dict[str, Any] = apply_overrides(Source(Path("e.yaml"), DATA), overrides).data
    return data


@pytest.mark.parametrize(
    ("override", "place", "value"),
    [
        ("baseline=name", ["baseline"], "name"),
        ("seed=3", ["seed"], 3),
        ("split=", ["split"], None),
        ("measures=[AP, RR@10]", ["measures"], ["AP", "RR@10"]),
        ("measures.0=AP", ["measures", 0], "AP"),
        ("systems.one.depth=5", ["systems", "one", "depth"], 5),
        ("systems.one.fusion=rrf", ["systems", "one", "fusion"], "rrf"),
        ("systems.one.fusion.k=5", ["systems", "one", "fusion"], {"method": "rrf", "k": 5}),
        ("systems.one.blend.x=5", ["systems", "one", "blend"], {"method": "none", "x": 5}),
        ("systems.rrf 0.5=x.fusion.k=5", ["systems", "rrf 0.5=x", "fusion", "k"], 5),
        (
            "systems.name.fusion.alpha=0.3",
            ["systems", "name", "fusion"],
            {"method": "convex", "alpha": 0.3},
        ),
        (
            "systems.name.fusion.weights.a=2",
            ["systems", "name", "fusion"],
            {"method": "convex", "weights": {"a": 2}},
        ),
        ("systems.bonus.fusion.bonus.1=1", ["systems", "bonus", "fusion", "bonus", 1], 1),
        (
            "systems.rrf 0.5=x.fusion.k.a=5",
            ["systems", "rrf 0.5=x", "fusion", "k"],
            {"a": 5, "b": 60},
        ),
        (
            "systems.name.fusion.k.a=5",
            ["systems", "name", "fusion"],
            {"method": "convex", "k": {"a": 5}},
        ),
        ("systems.one.fusion.k.a=5", ["systems", "one", "fusion", "k"], {"a": 5}),
        ("tune.trials=9", ["tune"], {"trials": 9}),
        ("gate.nDCG@10.max_drop=0.1", ["gate"], {"nDCG@10": {"max_drop": 0.1}}),
    ],
)
def test_puts_a_value_in_its_place(override: str, place: list[Any], value: object) -> None:
    found: Any = changed(override)
    for key in place:
        found = found[key]
    assert found == value


def test_a_number_for_all_runs_is_set_for_one_by_its_name() -> None:
    with pytest.raises(ConfigError, match=r"60.*runs:"):
        changed("systems.rrf 0.5=x.fusion.k.keyword=5")


def test_leaves_the_data_alone_and_takes_the_last() -> None:
    source = apply_overrides(Source(Path("e.yaml"), DATA), ["seed=1", "split=dev", "seed=2"])
    assert (source.data["seed"], "seed" in DATA) == (2, False)
    assert source.override_texts == ("seed=2", "split=dev")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("", "--set : KEY=VALUE"),
        ("seed", "--set seed: KEY"),
        ("=3", "--set =3: KEY=VALUE"),
        ("seed=[1", "--set seed=[1: '[1'"),
        ("baseline.x=1", "--set baseline.x=1: baseline"),
        ("measures.7=AP", "--set measures.7=AP: '7'"),
        ("measures.0.x=1", "--set measures.0.x=1: measures.0"),
        ("systems.two.depth=1", "--set systems.two"),
        ("systems.two=1", "--set systems.two=1:"),
    ],
)
def test_an_override_that_breaks_a_rule(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        changed(override)
    assert str(caught.value).startswith(message)


def test_systems_that_share_an_anchor_change_alone() -> None:
    fusion = {"method": "rrf", "k": 60}
    systems = {name: {"runs": ["a"], "fusion": fusion} for name in ("one", "two")}
    source = apply_overrides(
        Source(Path("e.yaml"), {"systems": systems}), ["systems.one.fusion.k=3"]
    )
    assert source.data["systems"]["one"]["fusion"]["k"] == 3
    assert source.data["systems"]["two"]["fusion"]["k"] == 60


def test_an_unknown_system_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"'name'\? \(known:"):
        changed("systems.nam.depth=1")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("sede=3", "--set sede: unknown"),
        ("sistems.a.b=3", "--set sistems: unknown"),
        ("systems.rrf.fusion.q=3", "--set systems.rrf"),
        ("systems.rrf.fusion.k=x", "--set systems.rrf"),
        ("systems.rrf.fusion.k=[1, x]", "--set systems.rrf k=x"),
        ("baseline=two", "--set baseline: unknown"),
    ],
)
def test_a_value_that_the_experiment_refuses(tmp_path: Path, override: str, message: str) -> None:
    path = tmp_path / "e.yaml"
    path.write_text("dataset: d\nbaseline: rrf\nsystems: {rrf: {runs: [a, b]}}\n", encoding="utf-8")
    if "[" in override:
        path.write_text(path.read_text().replace("baseline: rrf", "baseline: rrf k=1"))
    with pytest.raises(ConfigError) as caught:
        read_experiment(path, overrides=[override])
    assert str(caught.value).startswith(message)


def test_a_list_is_a_sweep(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text(
        "dataset: d\nbaseline: one\nsystems: {one: {runs: [a]}, rrf: {runs: [a, b]}}\n",
        encoding="utf-8",
    )
    experiment, source = read_experiment(path, overrides=["systems.rrf.fusion.k=[10, 60]"])
    assert [*experiment.systems] == ["one", "rrf k=10", "rrf k=60"]
    assert source.override_texts == ("systems.rrf.fusion.k=[10, 60]",)


# ── A list where one value belongs becomes one system a value


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
        ({"s": {"depth": []}}, "e.yaml: systems.s.depth:"),
        ({"s": {"depth": [[1]]}}, "e.yaml: systems.s.depth:"),
        ({"s": {"depth": [1, 1]}}, "e.yaml: systems.s.depth: 1"),
        (
            {"s": {"depth": [1, 2]}, "s depth=1": {}},
            "e.yaml: systems.s:",
        ),
        ({"s": {"depth": [*range(1, 202)]}}, "e.yaml: systems:"),
        (
            {"s": {"depth": [*range(1, 151)]}, "t": {"depth": [*range(1, 151)]}},
            "e.yaml: systems:",
        ),
        (
            {"s": {"depth": [*range(1, 10**5)], "top_k": [*range(1, 10**5)]}},
            "e.yaml: systems:",
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
