from __future__ import annotations

import copy
import json
from unittest.mock import Mock

import pytest

from fusion_bench.config.parameters import Value
from fusion_bench.console import session as query_details
from fusion_bench.console import setting as system_evaluator
from fusion_bench.console.session import LABEL, ConsoleSession, KnownTitles
from fusion_bench.console.setting import Setting
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.io.json_objects import read_titles
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.util.formatting import format_number


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
    mean = estimate_mean(paired_difference(values, base), session.groups)
    row = session.answer(setting(fusion__k=5))["measures"][0]
    assert (row["difference"], row["low"], row["high"]) == (mean.mean, mean.low, mean.high)


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


def test_the_baseline_itself_changes_nothing(session: ConsoleSession) -> None:
    answer = session.answer(setting("plain"))
    assert {row["difference"] for row in answer["measures"]} == {0.0}
    assert answer["baseline"]["won"] == answer["baseline"]["lost"] == []
    assert answer["previous"] is None


def test_findings_follow_the_setting(session: ConsoleSession) -> None:
    def ids(beta: float) -> set[str]:
        return {each["id"] for each in session.answer(setting(blend__beta=beta))["findings"]}

    assert ids(0.0) != ids(0.5)


def test_only_tuning_queries_are_shown(session: ConsoleSession) -> None:
    described = session.describe()
    assert (described["queries"], described["held_out"]) == (30, 30)
    with pytest.raises(ConfigError, match="held-out queries"):
        session.query_details("q45", setting())


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


def test_details_compare_with_a_setting_too(session: ConsoleSession) -> None:
    same = session.query_details("q01", setting(), setting())
    assert same["moves"] == []
    assert same["before"] == same["after"]


def test_two_pages_do_not_disturb_each_other(session: ConsoleSession) -> None:
    first = session.answer(setting(fusion__k=3), setting(fusion__k=4))
    kept = copy.deepcopy(first)
    session.answer(setting("plain", fusion__k=900), setting("plain"))
    assert session.answer(setting(fusion__k=3), setting(fusion__k=4)) == kept


def test_an_answer_is_json(session: ConsoleSession) -> None:
    for answer in (session.answer(setting()), session.describe()):
        json.dumps(answer, allow_nan=False)


def test_memory_is_bounded_however_many_depths_are_tried(
    session: ConsoleSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system_evaluator, "KINDS_KEPT", 2)
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
