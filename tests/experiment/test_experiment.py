"""An experiment's YAML: systems, settings, gate and the fallback to version 1."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fusion_bench as fb
from fusion_bench.cli import main
from fusion_bench.config.models import parse_model
from fusion_bench.config.yaml_files import Source
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.experiment import Experiment, read_experiment, replace_v2
from fusion_bench.experiment.settings import GatePolicy, Tolerance
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset_config import read_spec
from tests.gate import cases

HERE = Path(__file__).parents[2]
SYSTEMS = {"one": {"runs": ["a"]}}


def built(**options: object) -> Experiment:
    return parse_model(
        Experiment, {"dataset": "d", "baseline": "one", "systems": SYSTEMS, **options}
    )


def test_every_default_is_spelled_out() -> None:
    experiment = built()
    assert experiment.measures == ("nDCG@10", "RR@10", "R@100")
    assert (experiment.ties, experiment.alpha) == ("trec", 0.05)
    assert experiment.systems["one"].name == "one"
    assert experiment.systems["one"].fusion.method == "rrf"
    assert experiment.dataset_names == ("d",)
    assert built(dataset=None, datasets=["a", "b"]).dataset_names == ("a", "b")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": None}, "name one 'dataset'"),
        ({"datasets": ["a"]}, "name one 'dataset'"),
        ({"dataset": None, "datasets": ["a", "a"]}, "datasets: 'a' is listed"),
        ({"measures": []}, "measures: tuple"),
        ({"alpha": 0}, "alpha: input"),
        ({"seed": -1}, "seed: input"),
        ({"alpha": "0.1"}, "alpha: input"),
        ({"interval": "t"}, "interval: unknown key"),
        ({"min_gain": -1}, "min_gain: input"),
        ({"systems": []}, "systems: a mapping"),
        ({"systems": {"one": 3}}, "systems.one: a mapping"),
        ({"systems": {"one": {"runs": []}}}, "systems.one.runs:"),
        ({"systems": {"one": {"runs": ["a"], "name": "x"}}}, "systems: one:"),
    ],
)
def test_what_breaks_a_rule(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        built(**options)
    assert str(caught.value).startswith(message)


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
        with pytest.raises(ConfigError, match=r"systems\..*runs\.\d: "):
            experiment.check_datasets({"bm25": frozenset()}, spec.rerank, source)
    assert experiment.baseline in experiment.systems
    assert len(experiment.systems) >= 5


def test_the_example_cuts_no_list_that_it_measures_further_down() -> None:
    experiment, _ = read_experiment(HERE / "experiments" / "example.yaml")
    assert {system.top_k for system in experiment.systems.values()} == {None}
    assert "R@100" in experiment.measures


# ── what may stand under ``gate:``


def experiment(tmp_path: Path, gate: str, systems: str = "live") -> Experiment:
    text = cases.FILES[cases.EXPERIMENT].split("gate:")[0]
    lines = text.replace("  live: {runs: [a]}", f"  {systems}: {{runs: [a]}}")
    path = tmp_path / "x.yaml"
    path.write_text(f"{lines}{gate}\n", encoding="utf-8")
    return read_experiment(path)[0]


def test_the_short_form_is_the_checks(tmp_path: Path) -> None:
    short = experiment(tmp_path, "gate: {nDCG@10: {max_drop: 0.005}, RR@10: {max_drop: 0.01}}")
    long = experiment(
        tmp_path, "gate: {checks: {nDCG@10: {max_drop: 0.005}, RR@10: {max_drop: 0.01}}}"
    )
    assert short.gate == long.gate
    assert short.gate is not None
    assert short.gate.measures == ("nDCG@10", "RR@10")
    assert short.gate.inconclusive == "block"


def test_slices_go_for_all_measures_or_for_one() -> None:
    policy = GatePolicy(
        checks={
            "RR": Tolerance(max_drop=0.1),
            "AP": Tolerance(max_drop=0.1, slices=()),
            "P@5": Tolerance(max_drop=0.1, slices=("global",)),
        },
        slices=("local",),
    )
    assert policy.slices_of("RR") == (None, "local")
    assert policy.slices_of("AP") == (None,)
    assert policy.slices_of("P@5") == (None, "global")


@pytest.mark.parametrize(
    ("gate", "complaint"),
    [
        ("gate: {RR@10: {max_drop: -1}}", r"gate\.RR@10\.max"),
        ("gate: {RR@10: {max_drop: .nan}}", "plain digits, .* given"),
        ("gate: {RR@10: 0.01}", r"gate\.RR@10: a mapping"),
        ("gate: {RR@10: {max_drop: some}}", r"RR@10\.max_drop:"),
        ("gate: {RR@10: {max_drop: -1}}", r"RR@10\.max_drop:"),
        ("gate: {RR@10: {max_drop: 0, maxdrop: 1}}", "unknown key 'maxdrop'"),
        ("gate: {system: live, RR@10: {max_drop: 0}}", "unknown key 'RR@10'"),
        ("gate: {}", r"gate\.checks:"),
        ("gate: {checks: {}}", "gate: checks: name"),
        (
            "gate: {checks: {RR: {max_drop: 0}}, system: dead}",
            r"x\.yaml:\d+: gate\.system:",
        ),
        (
            "gate: {checks: {RR: {max_drop: 0}}, slices: [a, a]}",
            r"gate\.slices: 'a'",
        ),
        (
            "gate: {checks: {RR: {max_drop: 0}}, inconclusive: maybe}",
            r"gate\.inconclusive: .*'block'",
        ),
        (
            "gate: {checks: {RR: {max_drop: 0}}, "
            "guards: [{measure: RR, max_loss: 0.1, max_share: 2}]}",
            "max_share",
        ),
        (
            "gate: {checks: {RR: {max_drop: 0}}, guards: [{measure: RR, lose: 0.1}]}",
            r"guards\.0\.lose:",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, gate: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        experiment(tmp_path, gate)


def test_the_only_system_beside_the_baseline_is_guarded(tmp_path: Path) -> None:
    found = experiment(tmp_path, "gate: {RR: {max_drop: 0}}").gated_system
    assert found is not None
    assert found.name == "live"


def test_a_system_that_stands_alone_is_guarded() -> None:
    alone = Experiment.model_validate(
        {"dataset": "d", "baseline": "it", "systems": {"it": {"runs": ["a"]}}}
    )
    assert alone.gated_system == alone.systems["it"]


def test_of_several_systems_one_must_be_named() -> None:
    systems = {name: {"runs": ["a"]} for name in ("one", "two", "three")}
    open_ = {"dataset": "d", "baseline": "one", "systems": systems}
    assert Experiment.model_validate(open_).gated_system is None
    gate = {"checks": {"RR": {"max_drop": 0}}, "system": "one"}
    named = Experiment.model_validate({**open_, "gate": gate})
    assert named.gated_system == named.systems["one"]


# ── whatever makes a system asks ``RAG_FUSION_V2_ENABLED``, and says where the switch acts


SWITCH = "RAG_FUSION_V2_ENABLED"
ROLES = {"a": ["question"], "b": ["keyword"]}
V2 = {"runs": ["a", "b"], "fusion": "rrf_v2"}
RUNS = {
    name: fb.Run.from_dict(name, {"q": {"d1": 2.0, "d2": 1.0}}, roles=frozenset(roles))
    for name, roles in ROLES.items()
}
QRELS = {"q": {"d1": 1, "d2": 0}}
#: Scores of the first document of both lists: v1 counts neither the weight nor the bonus.
FIRST = 2 / 61


def fuse() -> float:
    return fb.fuse(RUNS, "rrf_v2").to_dict()["q"]["d1"]


def fuse_a_system() -> float:
    return fb.fuse(RUNS, System("x", ["a", "b"], "rrf_v2")).to_dict()["q"]["d1"]


def search() -> float:
    lists = {name: [("d1", 2.0), ("d2", 1.0)] for name in ROLES}
    with fb.Pipeline(V2, roles=ROLES) as pipeline:
        found = pipeline.search_sync("q", lists)
    assert not found.v2_enabled
    return found.documents[0].score


@pytest.mark.parametrize("make", [fuse, fuse_a_system, search])
def test_systems_of_python_follow_the_switch_and_it_is_said(
    make: Callable[[], float], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(SWITCH, "off")
    assert make() == pytest.approx(FIRST)
    assert f"{SWITCH} is off: system " in caplog.text
    monkeypatch.setenv(SWITCH, "maybe")
    with pytest.raises(ConfigError, match=f"{SWITCH}: 'maybe' "):
        make()


def test_a_comparison_of_python_says_what_the_switch_was(monkeypatch: pytest.MonkeyPatch) -> None:
    systems: Any = {"v1": "rrf", "v2": "rrf_v2"}
    for value in (True, False):
        monkeypatch.setenv(SWITCH, str(value))
        report = fb.compare(QRELS, RUNS, systems=systems, baseline="v1").report
        assert report.provenance.v2_enabled is value
        [collection] = report.collections
        [v2] = [system for system in collection.systems if system.name == "v2"]
        assert v2.config is not None
        assert v2.config["fusion"]["method"] == ("rrf_v2" if value else "rrf")


def test_the_command_fuse_says_that_the_switch_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(SWITCH, "off")
    for name in ROLES:
        Path(f"{name}.trec").write_text("q Q0 d1 1 2.0 x\nq Q0 d2 2 1.0 x\n")
    assert main(["fuse", "a.trec", "b.trec", "--method", "rrf_v2", "--out", "o.trec"]) == 0
    score = float(Path("o.trec").read_text().split()[4])
    assert score == pytest.approx(FIRST)
    assert f"{SWITCH} is off: system" in caplog.text


def test_stages_are_replaced_too() -> None:
    given = System("x", ["inner", "b"], stages={"inner": {"name": "inner", **V2}})
    plain = replace_v2(given)
    assert plain.stages is not None
    assert plain.stages["inner"].fusion.method == "rrf"
    assert replace_v2(plain) == plain
