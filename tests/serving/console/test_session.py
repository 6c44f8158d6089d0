"""A session of the console: its controls, its verdict, what it saves."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from fusion_bench.cli.application.progress import progress_bar
from fusion_bench.config.parameters import Value
from fusion_bench.errors import ConfigError, DataError, FusionBenchError
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.json_objects import read_titles
from fusion_bench.io.looks import read_looks
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.serving.console import session as query_details
from fusion_bench.serving.console import setting as system_evaluator
from fusion_bench.serving.console.experiment_files import NameTakenError, save_setting
from fusion_bench.serving.console.held_out_verdict import ask_held_out
from fusion_bench.serving.console.session import LABEL, ConsoleSession, KnownTitles
from fusion_bench.serving.console.setting import Control, Setting
from fusion_bench.stats.intervals import estimate_mean, paired_difference
from fusion_bench.tune.options import TuneOptions
from fusion_bench.tune.run import run_tuning
from fusion_bench.tune.space import declared_parameters
from fusion_bench.util.formatting import format_number
from tests.serving.console.project import make_project, open_project


def setting(system: str = "boosted", **values: Value) -> Setting:
    return Setting(
        system=system, parameters={path.replace("__", "."): v for path, v in values.items()}
    )


def test_numbers_are_those_of_eval_on_the_tuning_queries(session: ConsoleSession) -> None:
    overrides = ["split=dev", "systems.boosted.fusion.k=5", "systems.boosted.blend.beta=0.25"]
    parsed, source = read_experiment(session.source.path, overrides=overrides)
    report = run_experiment(parsed, source, folders=[session.dataset_file.parent.parent])
    expected = {s.name: s for s in report.collections[0].systems}
    answer = session.answer(setting(fusion__k=5, blend__beta=0.25))
    assert answer["label"] == LABEL
    for row in answer["measures"]:
        for name, key in (("boosted", "mean"), ("plain", "baseline")):
            mean = expected[name].measures[row["measure"]].mean
            assert row[key] == mean
            assert row["texts"][key] == format_number(mean)


def test_intervals_are_students_and_not_adjusted(session: ConsoleSession) -> None:
    system, _ = session.open_setting(setting(fusion__k=5))
    values, base = session.evaluator.evaluate(system)[0], session.baseline_values[0]
    mean = estimate_mean(paired_difference(values, base), session.evaluator.runs.group_codes)
    row = session.answer(setting(fusion__k=5))["measures"][0]
    assert (row["difference"], row["low"], row["high"]) == (mean.mean, mean.low, mean.high)


def test_a_curve_has_the_means_of_the_settings_along_a_slider(session: ConsoleSession) -> None:
    answer = session.explore(setting(blend__beta=0.25), "fusion.k")
    values = [value for value, _ in answer["curve"]]
    assert values == sorted(set(values))
    assert len(values) > 5
    [control] = [c for c in session.open_setting(setting())[1] if c.parameter.path == "fusion.k"]
    assert (values[0], values[-1]) == control.parameter.bounds
    for value, mean in answer["curve"][:: len(values) - 1]:
        row = session.answer(setting(blend__beta=0.25, fusion__k=value))["measures"][0]
        assert row["mean"] == mean
    assert len({mean for _, mean in answer["curve"]}) > 1
    with pytest.raises(ConfigError, match=r"'fusion\.method'"):
        session.explore(setting(), "fusion.method")


def test_unjudged_shares_are_those_of_eval(session: ConsoleSession) -> None:
    parsed, source = read_experiment(session.source.path, overrides=["split=dev"])
    report = run_experiment(parsed, source, folders=[session.dataset_file.parent.parent])
    [collection] = report.collections
    answer = session.explore(setting())
    assert answer["curve"] == []
    for key, name in (("setting", "boosted"), ("baseline", "plain")):
        assert answer["unjudged"][key] == collection.system(name).unjudged_share


def test_lists_queries_that_won_and_lost_against_both(session: ConsoleSession) -> None:
    earlier, now = setting(blend__beta=0.0), setting(blend__beta=1.0)
    answer = session.answer(now, earlier)
    for key, other in (("baseline", setting("plain")), ("previous", earlier)):
        before = session.evaluator.evaluate(session.open_setting(other)[0])[0]
        after = session.evaluator.evaluate(session.open_setting(now)[0])[0]
        changes = answer[key]
        assert changes["better"] == (after > before).sum() > 0
        assert changes["worse"] == (after < before).sum()
        assert changes["better"] + changes["same"] + changes["worse"] == len(after)
        assert all(each["after"] > each["before"] for each in changes["won"])
        assert all(each["after"] < each["before"] for each in changes["lost"])
        assert changes["won"][0]["text"].startswith("question ")


def test_the_baseline_and_the_same_setting_change_nothing(session: ConsoleSession) -> None:
    answer = session.answer(setting("plain"))
    assert {row["difference"] for row in answer["measures"]} == {0.0}
    assert answer["baseline"]["won"] == answer["baseline"]["lost"] == []
    assert answer["previous"] is None
    same = session.query_details("q01", setting(), setting())
    assert same["moves"] == []
    assert same["before"] == same["after"]


def test_findings_follow_the_setting(session: ConsoleSession) -> None:
    def ids(beta: float) -> set[str]:
        return {each["id"] for each in session.answer(setting(blend__beta=beta))["findings"]}

    assert ids(0.0) != ids(0.5)


def test_tuning_queries_alone_are_shown_as_json(session: ConsoleSession) -> None:
    described = session.describe()
    assert (described["queries"], described["held_out"]) == (30, 30)
    with pytest.raises(ConfigError, match="held-out queries"):
        session.query_details("q45", setting())
    for answer in (session.answer(setting()), session.describe()):
        json.dumps(answer, allow_nan=False)


def test_details_of_a_query_explain_each_move(session: ConsoleSession) -> None:
    now = setting(fusion__weights__a=0.0, blend__beta=0.0)
    won = session.answer(now)["baseline"]["won"][0]["query"]
    details = session.query_details(won, now)
    assert details["text"].startswith("question ")
    first = details["after"][0]
    assert (first["document"], first["rank"], first["grade"]) == ("d0", 1, 1)
    assert first["title"] == "title 0"
    assert sum(first["terms"].values()) == pytest.approx(first["score"])
    move = next(each for each in details["moves"] if each["document"] == "d0")
    assert move["before"] != move["after"] == 1
    assert move["cause"]
    assert first["other_rank"] == move["before"]


def test_a_title_is_looked_up_once(
    session: ConsoleSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That reads the file of documents, which takes seconds where it is large."""
    counted = Mock(wraps=read_titles)
    monkeypatch.setattr(query_details, "read_titles", counted)
    titles = KnownTitles(session.dataset.documents)
    expected = {"d0": "title 0", "unknown": ""}
    assert [titles.find_titles(["d0", "unknown"]) for _ in range(2)] == [expected, expected]
    assert counted.call_count == 1


def test_two_pages_do_not_disturb_each_other(session: ConsoleSession) -> None:
    first = session.answer(setting(fusion__k=3), setting(fusion__k=4))
    kept = copy.deepcopy(first)
    session.answer(setting("plain", fusion__k=900), setting("plain"))
    assert session.answer(setting(fusion__k=3), setting(fusion__k=4)) == kept


def test_memory_is_bounded_however_many_depths_are_tried(
    session: ConsoleSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system_evaluator, "MOST_DERIVED", 2)
    before = session.evaluator.runs
    answers = [session.answer(setting(depth=depth)) for depth in (1, 2, 3, 1)]
    assert session.evaluator.runs is not before  # the derived arrays went with it
    assert answers[0] == answers[3]


def test_a_remembered_setting_is_not_evaluated_again(
    session: ConsoleSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Mock(wraps=evaluate_systems)
    monkeypatch.setattr(system_evaluator, "evaluate_systems", counted)
    session.answer(setting(fusion__k=77), setting(fusion__k=78))
    session.answer(setting(fusion__k=78), setting(fusion__k=77))
    assert counted.call_count == 2


# ── controls


def controls(
    session: ConsoleSession, system: str = "boosted", **values: Value
) -> dict[str, Control]:
    parameters = {path.replace("__", "."): value for path, value in values.items()}
    _, listed = session.open_setting(Setting(system=system, parameters=parameters))
    return {control.parameter.path: control for control in listed}


def test_every_declared_parameter_has_a_control_with_the_range_of_tune(
    session: ConsoleSession,
) -> None:
    listed = controls(session)
    for parameter in declared_parameters(session.experiment.systems["boosted"]):
        if all(
            path in listed and listed[path].value in allowed for path, allowed in parameter.when
        ):
            assert listed[parameter.path].parameter == parameter
    assert {"fusion.k", "fusion.weights.b", "fusion.bonus.1.value", "blend.beta"} <= set(listed)
    assert {"dialect", "fusion.method", "blend.method", "blend.depth", "depth"} <= set(listed)


def test_controls_have_the_values_of_the_system_and_of_each_method(session: ConsoleSession) -> None:
    values = {path: control.value for path, control in controls(session, fusion__k=7).items()}
    assert values["fusion.k"] == 7
    assert values["fusion.weights.b"] == 2  # written by its role
    assert values["fusion.bonus.2.ranks"] == 2
    assert (values["dialect"], values["depth"], values["blend.depth"]) == (None, None, 5)
    listed = controls(session, fusion__method="rbc")
    assert "fusion.phi" in listed
    assert "fusion.k" not in listed
    listed = controls(session, fusion__method="weighted_score", fusion__normalize__method="min_max")
    assert listed["fusion.normalize.method"].value == "min_max"
    assert listed["fusion.normalize.method"].is_structural
    listed = controls(session, "plain", blend__method="position_aware")
    assert listed["blend.reranker"].value == "r"
    assert "blend.tiers.1.value" in listed
    assert "blend.reranker" not in controls(session, "plain")


def test_dialects_bring_methods_and_widen_no_depth(session: ConsoleSession) -> None:
    listed = controls(session, "plain", dialect="opensearch")
    assert listed["dialect"].value == "opensearch"
    assert "fusion.rank_constant" in listed
    assert "rbc" not in listed["fusion.method"].choices
    assert controls(session, "plain", dialect=None)["dialect"].value is None
    depth = controls(session, "plain", dialect="opensearch")["depth"]
    assert depth.parameter.bounds == (1, 3)
    assert controls(session, "plain", dialect="opensearch", depth=2)["depth"].value == 2


def test_values_beyond_what_the_experiment_may_have(tmp_path: Path) -> None:
    make_project(tmp_path)
    session = open_project(tmp_path, "systems.plain.depth={a: 2}")
    assert controls(session, "plain")["depth.a"].value == 2
    assert controls(session, "plain", depth__b=1)["depth.b"].value == 1
    assert controls(session, "plain", dialect="elasticsearch", depth=1)["depth"].value == 1
    changes = ("systems.boosted.fusion.k=20.5", "systems.boosted.fusion.weights.question=7")
    session = open_project(tmp_path, *changes)
    listed = controls(session)
    assert listed["fusion.k"].parameter.kind == "float"
    assert listed["fusion.weights.b"].parameter.bounds == (0, 7)
    assert listed["fusion.weights.a"].parameter.bounds == (0, 2)
    assert controls(session, fusion__weights__b=6.5)["fusion.weights.b"].value == 6.5
    with pytest.raises(ConfigError, match=r"from 0 to 7, given 7\.5"):
        controls(session, fusion__weights__b=7.5)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("fusion.k", 1e12, "fusion.k: "),
        ("fusion.k", 1.5, "fusion.k: must"),
        ("fusion.k", True, "fusion.k: "),
        ("fusion.k", None, "fusion.k: "),
        ("fusion.weights.b", 2.5, "fusion.weights.b: must"),
        ("fusion.weights.b", -0.1, "fusion"),
        ("fusion.weights.question", 1.0, "no control"),
        ("fusion.bonus.1.value", "0.1", "must be a number"),
        ("fusion.bonus.9.value", 0.1, "has 2 entries"),
        ("fusion.bonus.1.ranks", 10**29, "fusion"),
        ("fusion.nope", 1, "unknown key 'nope'"),
        ("fusion.method", "os.system", "unknown fusion method"),
        ("fusion.method", 3, "unknown fusion method"),
        ("blend.reranker", "other", "other"),
        ("blend.depth", 0, "depth"),
        ("depth", 10**9, "depth"),
        ("dialect", "nope", "unknown dialect"),
        ("dialect", 7, "an engine"),
        ("name", "x", "no control"),
        ("runs", "a", "runs"),
        ("a.b.c", 1, "unknown key"),
        ("stages.x.fusion.k", 1, "stages"),
        ("by_query_type.x.fusion.k", 1, "such query type"),
    ],
)
def test_values_that_no_control_takes_are_refused(
    session: ConsoleSession, path: str, value: object, message: str
) -> None:
    with pytest.raises(FusionBenchError, match=message) as caught:
        session.open_setting(Setting(system="boosted", parameters={path: value}))
    assert "\n" not in str(caught.value)


def test_weights_of_0_and_long_paths_are_refused(session: ConsoleSession) -> None:
    zeros = {"fusion.weights.a": 0, "fusion.weights.b": 0}
    with pytest.raises(ConfigError, match="every source weighs 0"):
        session.open_setting(Setting(system="boosted", parameters=zeros))
    with pytest.raises(ValueError, match="300"):
        Setting(system="boosted", parameters={"x" * 301: 1})


@pytest.mark.parametrize("value", [float("inf"), float("nan"), [1], {"a": 1}, "x" * 301])
def test_values_that_are_no_values_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"needed|characters"):
        Setting(system="boosted", parameters={"fusion.k": value})


# ── held out verdict


def test_the_verdict_is_that_of_tune_and_enters_its_ledger(tmp_path: Path) -> None:
    """A search over one value must say the same of it, as a look of its own number."""
    make_project(tmp_path)
    change = "systems.plain.fusion.weights={a: 1, b: 1}"
    session = open_project(tmp_path, change, system="plain")
    asked = Setting(system="plain", parameters={"fusion.weights.b": 2.0})
    mine = ask_held_out(session, asked, tmp_path / "reports")
    ledger = tmp_path / "datasets/made/looks.jsonl"
    (look,) = read_looks(ledger)
    assert (look.system, look.verdict, look.number) == ("plain", mine["verdict"], 1)

    ledger.unlink()
    overrides = [
        change,
        "tune={system: plain, trials: 3, sampler: grid, folds: 0, choose: best, "
        "front: {method: none}, parameters: {fusion.weights.b: {choices: [1.0, 2.0]}}}",
    ]
    parsed, source = read_experiment(tmp_path / "experiments/e.yaml", overrides=overrides)
    options, folders = TuneOptions(plots=False, allow_suspect=True), [tmp_path / "datasets"]
    ((report, _),) = run_tuning(parsed, source, options, tmp_path / "out", folders, progress_bar)
    assert report.choice.params == {"fusion.weights.b": 2.0}
    assert report.verdict == mine["verdict"]
    assert report.held_out.model_dump(mode="json") == mine["gain"]
    assert report.level == mine["level"]


def test_asking_again_spends_nothing_and_another_setting_does(tmp_path: Path) -> None:
    make_project(tmp_path)
    session = open_project(tmp_path)
    first = Setting(system="boosted", parameters={"fusion.k": 5})
    looks = [ask_held_out(session, first, tmp_path) for _ in range(2)]
    assert [look["look_number"] for look in looks] == [1, 1]
    assert [look["is_repeated"] for look in looks] == [False, True]
    other = ask_held_out(session, Setting(system="boosted", parameters={"blend.beta": 0}), tmp_path)
    assert other["look_number"] == 2
    assert other["level"] < looks[0]["level"]
    assert len(read_looks(tmp_path / "datasets/made/looks.jsonl")) == 2


def test_the_baseline_is_not_asked_of_and_a_plan_of_looks_has_no_effect(tmp_path: Path) -> None:
    make_project(tmp_path)
    session = open_project(tmp_path)
    with pytest.raises(ConfigError, match="of the baseline"):
        ask_held_out(session, Setting(system="plain"), tmp_path)
    assert not read_looks(tmp_path / "datasets/made/looks.jsonl")
    session = open_project(tmp_path, "tune.looks={max_queries: 60}")
    assert "has no effect" in ask_held_out(session, Setting(system="boosted"), tmp_path)["look"]


def test_few_queries_are_halved(tmp_path: Path) -> None:
    make_project(tmp_path)
    queries = tmp_path / "datasets/made/queries.jsonl"
    queries.unlink()
    dataset = tmp_path / "datasets/made/dataset.yaml"
    dataset.write_text(dataset.read_text().replace("queries: queries.jsonl\n", ""))
    assert open_project(tmp_path).describe()["held_out"] == 30


def test_a_degraded_rerank_list_is_shown_and_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_project(tmp_path)
    session = open_project(tmp_path)
    monkeypatch.setattr(Dataset, "degradation", lambda _, name: f"{name} is degraded")
    assert session.describe()["notes"] == ["r is degraded"]
    with pytest.raises(DataError, match="r is degraded"):
        ask_held_out(session, Setting(system="boosted"), tmp_path)
    accepting = open_project(tmp_path, "tune.degraded=accept")
    assert ask_held_out(accepting, Setting(system="boosted"), tmp_path)["look_number"] == 1


# ── save experiment


ASKED = Setting(system="boosted", parameters={"fusion.k": 9, "blend.beta": 0.25})


def test_the_saved_experiment_has_the_numbers_of_the_console(tmp_path: Path) -> None:
    make_project(tmp_path)
    session = open_project(tmp_path)
    saved = save_setting(session, ASKED, "mine")
    file = tmp_path / "experiments/mine.yaml"
    assert saved["file"] == str(file)
    assert file.read_text(encoding="utf-8") == saved["yaml"]
    assert saved["commands"]["tune"] == f"fusion-bench tune {file}"
    file.rename(tmp_path / "experiments/e.yaml")
    again = open_project(tmp_path)
    assert again.system == "mine"  # 'tune' names it
    assert again.answer(Setting(system="mine"))["measures"] == session.answer(ASKED)["measures"]
    assert again.tuning.trials == 20  # the rest of 'tune' stays


def test_commands_name_the_folders_that_the_console_was_given(session: ConsoleSession) -> None:
    elsewhere = replace(session, folders=(Path("my data"),))
    commands = save_setting(elsewhere, ASKED, "mine", write=False)["commands"]
    assert commands["eval"].endswith("mine.yaml --datasets 'my data'")


def test_files_are_replaced_only_when_asked_and_not_through_a_link(tmp_path: Path) -> None:
    make_project(tmp_path)
    session = open_project(tmp_path)
    (tmp_path / "experiments/mine.yaml").write_text("precious", encoding="utf-8")
    with pytest.raises(NameTakenError, match="exists"):
        save_setting(session, ASKED, "mine")
    assert save_setting(session, ASKED, "mine", write=False)["is_written"] is False
    assert (tmp_path / "experiments/mine.yaml").read_text(encoding="utf-8") == "precious"
    save_setting(session, ASKED, "mine", overwrite=True)
    assert "precious" not in (tmp_path / "experiments/mine.yaml").read_text(encoding="utf-8")
    target = tmp_path / "elsewhere"
    (tmp_path / "experiments/link.yaml").symlink_to(target)
    for overwrite in (False, True):
        with pytest.raises(ConfigError, match="is a link"):
            save_setting(session, ASKED, "link", overwrite=overwrite)
        with pytest.raises(ConfigError, match="that is open"):
            save_setting(session, ASKED, "e", overwrite=overwrite)
    assert not target.exists()


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "/x", "a/b", "a\\b", ".x", "x.yaml", "x\n", "é", "x" * 65, "-x"]
)
def test_a_name_is_no_path(session: ConsoleSession, name: str) -> None:
    with pytest.raises(ConfigError, match=r"name: .* 1 to 64"):
        save_setting(session, ASKED, name, write=False)
