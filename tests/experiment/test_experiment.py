"""An experiment file: rules that are checked before anything is computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from fusion_bench.config.models import parse_model
from fusion_bench.config.yaml_files import Source
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.experiment import Experiment, read_experiment
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.methods.fuse.rrf import RRF

HERE = Path(__file__).parents[2]
SYSTEMS = {"one": {"runs": ["a"]}}


def built(**options: object) -> Experiment:
    return parse_model(
        Experiment, {"dataset": "d", "baseline": "one", "systems": SYSTEMS, **options}
    )


def test_every_default_is_spelled_out() -> None:
    experiment = built()
    assert experiment.measures == ("nDCG@10", "RR@10", "R@100")
    assert (experiment.ties, experiment.alpha, experiment.correction) == ("trec", 0.05, "max_t")
    assert experiment.systems["one"].name == "one"
    assert experiment.systems["one"].fusion.method == "rrf"
    assert experiment.dataset_names == ("d",)
    assert built(dataset=None, datasets=["a", "b"]).dataset_names == ("a", "b")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": None}, "name one 'dataset', or several 'datasets': neither is given"),
        ({"datasets": ["a"]}, "name one 'dataset', or several 'datasets': both are given"),
        ({"dataset": None, "datasets": ["a", "a"]}, "datasets: 'a' is listed twice: keep one"),
        ({"measures": []}, "measures: tuple should have at least 1 item"),
        ({"alpha": 0}, "alpha: input should be greater than 0, given 0"),
        ({"alpha": 1}, "alpha: input should be less than 1, given 1"),
        ({"alpha": float("nan")}, "alpha: input should be"),
        ({"seed": -1}, "seed: input should be greater than or equal to 0, given -1"),
        ({"alpha": "0.1"}, "alpha: input should be a valid number, given '0.1'"),
        ({"seed": "7"}, "seed: input should be a valid integer, given '7'"),
        ({"seed": 1.5}, "seed: input should be a valid integer"),
        ({"resamples": 9_999}, "resamples: input should be greater than or equal to 10000"),
        ({"interval": "t"}, "interval: unknown key 'interval': intervals follow correction: max_t"),
        ({"correction": "z"}, "correction: input should be 'max_t', 'holm' or 'none'"),
        ({"min_gain": -1}, "min_gain: input should be greater than or equal to 0"),
        ({"systems": []}, "systems: a mapping of keys to values is needed, given []"),
        ({"systems": {"one": 3}}, "systems.one: a mapping of keys to values is needed, given 3"),
        ({"systems": {"one": {"runs": []}}}, "systems.one.runs: value should have at least 1"),
        ({"systems": {"one": {"runs": ["a"], "name": "x"}}}, "systems: one: the key is the"),
    ],
)
def test_what_breaks_a_rule(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        built(**options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("value", [True, "20", "", "1e", "inf", "1_000"])
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("fusion.k", "number"),
        ("fusion.weights.a", "number"),
        ("blend.min_score", "number"),
        ("blend.depth", "integer"),
        ("blend.tiers.3", "number"),
        ("top_k", "integer"),
        ("min_relevance", "number"),
    ],
)
def test_text_and_truth_values_are_no_numbers(path: str, kind: str, value: object) -> None:
    system: dict[str, Any] = {
        "runs": ["a", "b"],
        "fusion": {"method": "rrf", "k": 60, "weights": {"a": 2}},
        "blend": {"method": "position_aware", "reranker": "r", "depth": 20, "tiers": {3: 1}},
    }
    assert built(systems={"one": system})
    *parents, key = path.split(".")
    place: dict[Any, Any] = system
    for parent in parents:
        place = place[parent]
    place[int(key) if key.isdecimal() else key] = value
    with pytest.raises(ConfigError) as caught:
        built(systems={"one": system})
    expected = f"systems.one.{path}: input should be a valid {kind}, given {value!r}"
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("value", "k"), [(20, 20), (2.5, 2.5), (np.int64(20), 20), (np.float32(2.5), 2.5)]
)
def test_whatever_is_a_number_passes_as_one(value: object, k: float) -> None:
    system = {"runs": ["a", "b"], "fusion": {"method": "rrf", "k": value}}
    fusion = built(systems={"one": system}).systems["one"].fusion
    assert isinstance(fusion, RRF)
    assert (fusion.k, type(fusion.k)) == (k, float)


@pytest.mark.parametrize("text", ["1e1", "1e+1", "1.0e1", ".1E2", "100e-1"])
def test_numbers_with_an_exponent_that_yaml_takes_for_text(text: str) -> None:
    assert isinstance(yaml.safe_load(text), str)
    system = {"runs": ["a", "b"], "fusion": {"method": "rrf", "k": yaml.safe_load(text)}}
    fusion = built(systems={"one": system}).systems["one"].fusion
    assert isinstance(fusion, RRF)
    assert fusion.k == 10


def test_measures_are_what_the_dataset_resolves() -> None:
    source = Source(Path("e.yaml"), {}, {("measures",): 2})
    names = [m.name for m in built(measures=["nDCG@10", "RR@10"]).parse_measures(2, source)]
    assert names == ["nDCG@10", "RR(rel=2)@10"]
    with pytest.raises(ConfigError, match=r"e\.yaml:2: measures\.1: RR@10"):
        built(measures=["RR@10", "MRR@10"]).parse_measures(1, source)
    with pytest.raises(ConfigError, match=r"e\.yaml:2: measures\.0: "):
        built(measures=["XY@10"]).parse_measures(1, source)


def test_a_baseline_must_be_one_of_the_systems(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text("dataset: d\nbaseline: on e\nsystems: {one: {runs: [a]}}\n", encoding="utf-8")
    with pytest.raises(UnknownNameError, match=r"e\.yaml:2: baseline:.*'one'"):
        read_experiment(path)


@pytest.mark.parametrize("name", ["example", "default"])
def test_the_experiments_of_this_repository_fit_their_dataset(name: str) -> None:
    experiment, source = read_experiment(HERE / f"experiments/{name}.yaml")
    for dataset in experiment.dataset_names:
        spec, _ = read_spec(HERE / f"datasets/{dataset}/dataset.yaml")
        roles = {name: frozenset(run.roles) for name, run in spec.runs.items()}
        experiment.check_datasets(roles, spec.rerank, source)
        assert len(experiment.parse_measures(spec.binary_relevance, source)) >= 3
        with pytest.raises(ConfigError, match=r"systems\..*blend\.reranker: "):
            experiment.check_datasets(roles, [], source)
        with pytest.raises(ConfigError, match=r"systems\..*runs\.\d: unknown run"):
            experiment.check_datasets({"bm25": frozenset()}, spec.rerank, source)
    assert experiment.baseline in experiment.systems
    assert len(experiment.systems) >= 5


def test_the_example_cuts_no_list_that_it_measures_further_down() -> None:
    experiment, _ = read_experiment(HERE / "experiments" / "example.yaml")
    assert {system.top_k for system in experiment.systems.values()} == {None}
    assert "R@100" in experiment.measures
