"""``fusion-bench grades sensitivity``: verdicts and orders under each judge."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusion_bench.cli import main
from fusion_bench.judging.sensitivity import find_stability
from fusion_bench.stats.comparison import Answer
from tests.gate import cases
from tests.judging.grades.judged_project import ESTIMATE, SAMPLED, replace_in_dataset

Capture = pytest.CaptureFixture[str]
COMMAND = ["grades", "sensitivity", cases.EXPERIMENT]
#: To this judge only a document that `a` has at place 2, and `b` at place 1 or 2, is relevant.
OTHER_JUDGE = "".join(f"q{q} 0 n0 1\n" for q in range(cases.QUERIES))


@pytest.fixture
def project(project: Path) -> Path:
    (project / "datasets/mine/other.txt").write_text(OTHER_JUDGE, encoding="utf-8")
    replace_in_dataset(project, "judges:\n", "judges:\n  other: {path: other.txt, kind: human}\n")
    return project


def run_json(capsys: Capture, *words: str) -> dict[str, Any]:
    assert main([*COMMAND, *words, "--json"]) == 0
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    return record


@pytest.mark.usefixtures("project")
def test_verdicts_are_those_of_eval_under_each_judge_and_shifts_are_paired(capsys: Capture) -> None:
    record = run_json(capsys, "--judge", "qrels", "--judge", "other")

    base, live = record["systems"]
    assert (base["system"], base["stability"]) == ("plain", None)
    assert [each["answer"] for each in live["verdicts"]] == ["better", "worse"]
    assert live["stability"] == "reversed"
    assert main(["eval", cases.EXPERIMENT, "--no-plots", "--json"]) == 0
    [collection] = json.loads(capsys.readouterr().out)["collections"]
    compared = next(c for c in collection["comparisons"] if c["candidate"] == "live")
    own, other = live["verdicts"]
    for key in ("difference", "low", "high", "p_adjusted", "answer"):
        assert own[key] == compared[key]
    assert other["shift"] == pytest.approx(other["difference"] - own["difference"])
    assert other["shift_low"] < other["shift"] < other["shift_high"] < 0
    assert own["shift"] is None


@pytest.mark.usefixtures("project")
def test_order_of_the_systems_is_compared(capsys: Capture) -> None:
    record = run_json(capsys, "--judge", "qrels", "--judge", "llm", "--judge", "other")

    pairs = {(each["first"], each["second"]): each for each in record["orders"]}
    assert pairs["qrels", "llm"]["tau"] == 1
    assert pairs["qrels", "other"]["tau"] == -1
    assert pairs["qrels", "other"]["swapped"] == [["live", "plain"]]
    assert len(pairs) == 3


@pytest.mark.usefixtures("project")
def test_all_judges_are_compared_on_their_common_queries(capsys: Capture) -> None:
    record = run_json(capsys)

    assert record["queries"] == SAMPLED
    names = ["qrels", "other", "people", "picked", "volunteers", "llm"]
    assert [each["name"] for each in record["judges"]] == names
    assert record["judges"][0]["queries"] == cases.QUERIES
    means = {each["judge"]: each["mean"] for each in record["systems"][0]["verdicts"]}
    assert means["qrels"] == means["people"]


@pytest.mark.usefixtures("project")
def test_page_names_what_depends_on_the_judge(capsys: Capture) -> None:
    assert main([*COMMAND, "-v", "--judge", "picked", "--judge", "other"]) == 0

    out = capsys.readouterr().out
    assert "1 of 1 verdict depends" in out
    assert "worse to another: live." in out
    assert "'other' graded 60 queries." in out
    assert "no random sample" in out
    assert main([*COMMAND, "--judge", "qrels", "--judge", "llm"]) == 0
    assert "the same verdict" in capsys.readouterr().out


def test_judges_need_no_judgments_beside_them_but_a_common_query(
    project: Path, capsys: Capture
) -> None:
    replace_in_dataset(project, "qrels: qrels.txt\n", "")

    record = run_json(capsys, "--judge", "llm", "--judge", "other")

    assert record["systems"][1]["stability"] == "reversed"
    assert main([*ESTIMATE, "--json"]) == 0
    assert main([*ESTIMATE, "--machine-judge", "qrels"]) == 2
    assert "unknown judge 'qrels'" in capsys.readouterr().err
    (project / "datasets/mine/other.txt").write_text("z1 0 n0 1\n", encoding="utf-8")

    assert main([*COMMAND, "--judge", "llm", "--judge", "other"]) == 2
    assert "(llm: 60, other: 1)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--judge", "qrels"], "one judge (qrels)"),
        (["--judge", "llm", "--judge", "llm"], "'llm' is listed twice"),
        (["--judge", "llm", "--judge", "nobody"], "unknown judge 'nobody'"),
        (["--judge", "llm", "--judge", "qrels", "--system", "rrf"], "unknown system 'rrf'"),
    ],
)
@pytest.mark.usefixtures("project")
def test_judges_that_cannot_be_compared_are_refused(
    words: list[str], message: str, capsys: Capture
) -> None:
    assert main([*COMMAND, *words]) == 2
    assert message in capsys.readouterr().err


def test_judge_of_the_family_of_a_list_is_named(project: Path, capsys: Capture) -> None:
    replace_in_dataset(
        project, "{path: llm.txt, kind: machine", "{path: llm.txt, kind: machine, family: GPT"
    )
    replace_in_dataset(project, "a: {path: a.trec,", "a: {path: a.trec, family: gpt,")

    for command in ([*COMMAND, "--judge", "qrels", "--judge", "llm"], ESTIMATE):
        assert main(command) == 0
        assert "model family as a" in capsys.readouterr().out


def test_greatest_grades_that_differ_are_named(project: Path, capsys: Capture) -> None:
    path = project / "datasets/mine/people.txt"
    path.write_text(path.read_text("utf-8").replace(" 1\n", " 3\n"), encoding="utf-8")

    assert main([*COMMAND, "--judge", "llm", "--judge", "people"]) == 0
    assert "differ: 1 of 'llm'; 3 of 'people'." in capsys.readouterr().out
    assert main(ESTIMATE) == 0
    assert "differ: 3 of 'people'; 1 of 'llm'." in capsys.readouterr().out
    replace_in_dataset(
        project, "people: {path: people.txt,", "people: {path: people.txt, map: {3: 1},"
    )
    assert main(ESTIMATE) == 0
    assert "greatest grades differ" not in capsys.readouterr().out


def test_system_of_several_trials_is_their_mean(project: Path, capsys: Capture) -> None:
    mine = project / "datasets/mine"
    (mine / "a-1.trec").write_text((mine / "a.trec").read_text("utf-8"), encoding="utf-8")
    (mine / "a-2.trec").write_text((mine / "b.trec").read_text("utf-8"), encoding="utf-8")
    replace_in_dataset(project, "a: {path: a.trec,", 'a: {path: "a-*.trec",')

    record = run_json(capsys, "--judge", "qrels", "--judge", "other")

    places = 1 + np.arange(cases.QUERIES) % 4
    by_people = record["systems"][1]["verdicts"][0]["mean"]
    assert by_people == pytest.approx(float(np.mean([np.ones(60), 1 / places])))
    assert main([*ESTIMATE, "-v"]) == 0
    assert "for these trials" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["better", "better, by less than min_gain"], "same"),
        (["equivalent", "not shown"], "same"),
        (["better", "not shown"], "not shown by all"),
        (["worse", "unjudged decide", "worse"], "not shown by all"),
        (["better", "not shown", "worse"], "reversed"),
    ],
)
def test_stability_counts_directions(answers: list[Answer], expected: str) -> None:
    assert find_stability(answers) == expected
