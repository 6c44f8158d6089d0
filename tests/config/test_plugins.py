"""Plugins: their registry, entry points."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from fusion_bench.cli import main
from fusion_bench.config.plugins import distribution_of, load_reference
from fusion_bench.config.registry import MethodRegistry, Registry
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.update import update_baseline
from fusion_bench.measures import compute_measures, measure_classes, parse_measure, tie_sensitivity
from fusion_bench.methods.blend import blends
from fusion_bench.methods.fuse import fusions
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.normalize import normalizers
from tests import tiny
from tests.config.plugin_package import DISTRIBUTION, install_package, put_on_path, write_package

METHODS: list[tuple[MethodRegistry[Any], str, str]] = [
    (fusions, "best_score", "tiny_plugin.methods:BestScore"),
    (normalizers, "tiny_halve", "tiny_plugin.methods:Halve"),
    (blends, "reverse", "tiny_plugin.methods:Reverse"),
    (measure_classes, "Hit", "tiny_plugin.methods:HitAtOne"),
]


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    install_package(tmp_path / "site")
    put_on_path(tmp_path / "site", monkeypatch)
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "tiny_plugin"]:
        del sys.modules[name]


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(("registry", "name", "reference"), METHODS)
def test_a_method_comes_from_an_entry_point_or_a_reference(
    registry: MethodRegistry[Any], name: str, reference: str
) -> None:
    for method in (name, reference):
        model = registry.build(method)
        assert model.model_dump()["method"] == method
        assert model.model_dump()["distribution"] == DISTRIBUTION
        assert registry.build(model.model_dump(mode="json")) == model
    assert name in registry.load_all()
    assert name not in registry.load_built_in()


@pytest.mark.usefixtures("_installed")
def test_a_system_states_the_distribution_of_each_method() -> None:
    system = System.model_validate(
        {
            "name": "s",
            "runs": ["a"],
            "fusion": {"method": "weighted_score", "normalize": "tiny_plugin.methods:Halve"},
            "blend": "reverse",
        }
    )
    resolved = system.model_dump(mode="json")
    assert resolved["fusion"]["normalize"]["distribution"] == DISTRIBUTION
    assert resolved["blend"]["distribution"] == DISTRIBUTION
    assert "distribution" not in resolved["fusion"]
    assert System.model_validate(resolved) == system


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize("head", ["Hit", "tiny_plugin.methods:HitAtOne"])
def test_a_measure_of_a_plugin_is_computed(head: str) -> None:
    measure = parse_measure(f"{head}@5", binary_relevance=2)
    assert measure.name == f"{head}(rel=2)@5"
    assert parse_measure(measure.name, binary_relevance=2) == measure
    runs = align(
        Qrels.from_dict({"p": {"a": 2, "b": 1}, "q": {"a": 1, "b": 2}}),
        [Run.from_dict("r", {"p": {"a": 1.0, "b": 1.0}, "q": {"a": 1.0}})],
    )
    positions, firsts = np.array([2, 1, 1]), np.array([1, 1, 1])
    assert compute_measures([measure], runs, positions).tolist() == [[1.0, 0.0]]
    ties = tie_sensitivity([measure], runs, positions, firsts)
    assert (ties.minimum.tolist(), ties.maximum.tolist()) == ([[0.0, 0.0]], [[1.0, 0.0]])
    assert np.isnan(ties.expected[0, 0])
    with pytest.raises(ConfigError, match="option 'gain'"):
        parse_measure(f"{head}(gain=2)")


@pytest.mark.usefixtures("_installed")
def test_plugins_may_be_any_objects_of_their_kind_and_version() -> None:
    with pytest.raises(ConfigError, match=r"tiny-plugin==0\.9,.*tiny-plugin==1\.2"):
        fusions.build({"method": "best_score", "distribution": "tiny-plugin==0.9"})
    with pytest.raises(ConfigError, match=r"x==1,.*None"):
        fusions.build({"method": "rrf", "distribution": "x==1"})
    registry: Registry[object] = Registry("format", "tests.config.empty", "fusion_bench.formats")
    assert registry.find_plugin("tiny") is registry.find_plugin("tiny_plugin.methods:FORMAT")
    assert distribution_of(registry.load_all()["tiny"]) == DISTRIBUTION
    with pytest.raises(UnknownNameError, match="known: tiny"):
        registry.find_plugin("other")
    with pytest.raises(ConfigError, match="from Blend"):
        blends.build("tiny_plugin.methods:BestScore")
    with pytest.raises(ConfigError, match="cannot be imported"):
        blends.build("tiny_plugin.methods:Missing")


@pytest.mark.usefixtures("_installed")
def test_a_command_comes_from_an_entry_point(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "\n  hello " in capsys.readouterr().out
    assert main(["hello", "you"]) == 0
    assert capsys.readouterr().out == "hello you\n"


@pytest.mark.usefixtures("_installed")
def test_two_distributions_may_not_share_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "second" / "second-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: second\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[fusion_bench.fusions]\nbest_score = second:B\n")
    monkeypatch.syspath_prepend(info.parent)
    with pytest.raises(ConfigError, match=r"two .*'best_score'"):
        fusions.build("best_score")
    assert fusions.build("rrf").method == "rrf"


@pytest.mark.parametrize("reference", ["a", "a:", ":b", "a b:c", "a.:c", "a:b.c"])
def test_a_reference_names_a_module_and_an_object(reference: str) -> None:
    with pytest.raises(ConfigError, match=r"package\.module:Name"):
        load_reference(reference)


@pytest.mark.parametrize("has_metadata", [False, True])
def test_a_module_of_the_working_directory_is_refused_before_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_metadata: bool
) -> None:
    folder = tmp_path / "work"
    (install_package if has_metadata else write_package)(folder)
    put_on_path(folder, monkeypatch)
    monkeypatch.chdir(folder)
    with pytest.raises(ConfigError, match=r"\(.*tiny_plugin.*\)"):
        fusions.build("tiny_plugin.methods:BestScore")
    with pytest.raises(UnknownNameError, match=r"unknown .*'best_score'"):
        fusions.build("best_score")
    assert not [name for name in sys.modules if name.startswith("tiny_plugin")]


def test_a_module_that_is_not_installed_is_refused() -> None:
    with pytest.raises(ConfigError, match="'nowhere' is not"):
        fusions.build("nowhere.module:Class")


def test_an_editable_installation_is_an_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package(tmp_path / "site")
    (tmp_path / "site" / "tiny_plugin").rename(tmp_path / "tiny_plugin")
    info = tmp_path / "site" / "tiny_plugin-1.2.dist-info"
    (info / "RECORD").write_text("tiny_plugin.pth,,\n")
    (info / "direct_url.json").write_text(
        f'{{"url": "{tmp_path.as_uri()}", "dir_info": {{"editable": true}}}}'
    )
    put_on_path(tmp_path / "site", monkeypatch)
    monkeypatch.syspath_prepend(tmp_path)
    dumped = fusions.build("best_score").model_dump()
    assert dumped["distribution"] == f"{DISTRIBUTION} (editable)"


@pytest.mark.usefixtures("_installed")
def test_reports_and_baselines_state_the_distribution_of_a_measure(tmp_path: Path) -> None:
    root = tiny.make(tmp_path / "tiny")
    text = (root / tiny.EXPERIMENT).read_text(encoding="utf-8")
    data = yaml.safe_load(text) | {
        "measures": ["Hit@3", "RR@10"],
        "gate": {"system": "two", "checks": {"Hit@3": {"max_drop": 0.5}}},
    }
    (root / tiny.EXPERIMENT).write_text(yaml.safe_dump(data), encoding="utf-8")
    experiment, source = read_experiment(root / tiny.EXPERIMENT)
    folders = [root / "datasets"]
    report = run_experiment(experiment, source, folders=folders)
    assert report.settings["measure_distributions"] == {"Hit@3": DISTRIBUTION}
    inputs = GateInputs(experiment, source, folders)
    baseline = update_baseline(inputs, tmp_path / "b.json", "r")
    assert baseline.collections[0].definitions["Hit@3"]["distribution"] == DISTRIBUTION


def test_methods_are_built_from_names_mappings_and_models() -> None:
    assert fusions.build("rrf") == RRF()
    assert fusions.build({"method": "rrf", "k": 20}) == RRF(k=20)
    model = RRF(k=3)
    assert fusions.validate_field(model) is model


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ("rff", UnknownNameError, "unknown fusion method"),
        ({"method": ["rrf"]}, UnknownNameError, "unknown fusion method"),
        ({"k": 1}, ConfigError, f"'method' is required (known: {', '.join(fusions.list_names())})"),
        ({}, ConfigError, "'method' is required"),
        (None, ConfigError, "a fusion method"),
        ({"method": "rrf", "k": -1}, ConfigError, "k: input"),
        ({"method": "rrf", "kk": 1}, ConfigError, "kk: unknown"),
    ],
)
def test_what_nothing_can_be_built_from(data: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        fusions.build(data)
    assert str(caught.value).startswith(message)
