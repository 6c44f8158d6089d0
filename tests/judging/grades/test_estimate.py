"""``fusion-bench grades estimate`` and ``sample``; from a drawn sample to an estimate."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.cli import main
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.judging.estimate import EstimatedDifference, estimate_differences
from fusion_bench.judging.judge_values import JudgeValues
from fusion_bench.stats.comparison import MeanDifference
from fusion_bench.stats.intervals import draw_queries
from fusion_bench.stats.values import MeasuredValues
from tests.gate import cases
from tests.judging.grades.judged_project import ESTIMATE, SAMPLED, replace_in_dataset

Capture = pytest.CaptureFixture[str]


def make_values(judge: str, queries: int, *, shift: float, seed: int = 0) -> JudgeValues:
    """Three systems on q0, q1, …; ``up`` is better than ``base``, ``copy`` is the same."""
    base = np.random.default_rng(seed).uniform(0, 0.4, size=queries)
    gain = np.random.default_rng(seed + 1).uniform(0, 0.4, size=queries)
    return judged(judge, {"base": base, "up": base + gain + shift, "copy": base})


def judged(judge: str, values: Mapping[str, FloatArray]) -> JudgeValues:
    measures = ("nDCG@10", "RR@10")
    queries = tuple(f"q{n}" for n in range(len(values["base"])))
    return JudgeValues(
        {name: dict.fromkeys(measures, MeasuredValues(row)) for name, row in values.items()},
        *("base", measures, queries, measures),
        judge=judge,
        queries=queries,
        unjudged=dict.fromkeys(values, 0.0),
    )


def row_of(values: JudgeValues, name: str) -> FloatArray:
    return values.systems[name]["nDCG@10"].values


def take(values: JudgeValues, count: int, *, lower: float = 0.0) -> JudgeValues:
    """The first queries, with ``up`` lower by as much."""
    rows = {name: row_of(values, name)[:count].copy() for name in values.systems}
    rows["up"] -= lower
    return judged("people", rows)


def estimate(people: JudgeValues, machine: JudgeValues) -> list[EstimatedDifference]:
    return list(estimate_differences(people, machine, alpha=0.05, min_gain=0.005))


def measure_width(item: MeanDifference) -> float:
    assert item.low is not None
    assert item.high is not None
    return item.high - item.low


def test_bias_of_the_machine_is_taken_away() -> None:
    machine = make_values("llm", 200, shift=0.15)
    people = take(machine, 30, lower=0.15)
    row_of(people, "up")[:] += np.tile([0.01, -0.01], 15)

    up, copy, *others = estimate(people, machine)

    truth = row_of(machine, "up").mean() - row_of(machine, "base").mean() - 0.15
    assert up.difference == pytest.approx(truth, abs=0.003)
    assert up.low <= truth <= up.high
    assert up.machine.low is not None
    assert up.machine.low > truth
    assert (up.answer, copy.answer) == ("better", "not shown")  # of copy people judged a part
    assert [each.answer for each in others] == [None, None]
    assert (up.people.queries, up.machine.queries) == (30, 200)


def test_intervals_of_the_primary_measure_hold_together() -> None:
    machine = make_values("llm", 200, shift=0.1, seed=4)
    rng = np.random.default_rng(9)
    people = take(machine, 30)
    row_of(people, "up")[:] += rng.normal(0, 0.1, size=30)

    up, _, other, _ = estimate(people, machine)

    assert up.p_adjusted == pytest.approx(min(1, 2 * up.p))
    assert other.p_adjusted is None
    assert measure_width(up) > measure_width(other)


def test_machine_that_was_hardly_ever_wrong_shows_nothing() -> None:
    """On the queries that people did not judge it may be."""
    machine = make_values("llm", 100, shift=0.2)
    people = take(machine, 20)
    row_of(people, "up")[:9] += 0.01

    [up, *_] = estimate(people, machine)

    assert up.low is not None
    assert up.low > 0
    assert up.few_changes
    assert (up.differing, up.answer) == (9, "not shown")


def test_differences_on_every_query_that_are_tiny_show_nothing() -> None:
    """As a measure that looks deep has them: nothing tells how far off the machine is elsewhere."""
    machine = make_values("llm", 200, shift=0.2)
    people = take(machine, 30)
    row_of(people, "up")[:] += np.random.default_rng(4).normal(0, 0.003, size=30)

    for each in estimate(people, machine):
        assert each.few_changes
        assert each.answer in (None, "not shown")
        assert each.differing < 10


def test_equal_systems_are_identical_only_where_people_judged_all() -> None:
    machine = make_values("llm", 30, shift=0.2)
    answers = [estimate(take(machine, count), machine)[1].answer for count in (29, 30)]
    assert answers == ["not shown", "identical"]


def test_difference_below_the_least_gain_is_called_so() -> None:
    machine = make_values("llm", 400, shift=0.2)
    small = np.random.default_rng(3).normal(0.05, 0.01, size=400)
    row_of(machine, "up")[:] = row_of(machine, "base") + small
    people = take(machine, 50)
    row_of(people, "up")[:] += np.random.default_rng(4).normal(0, 0.02, size=50)

    [up, *_] = estimate_differences(people, machine, alpha=0.05, min_gain=0.1)

    assert up.answer is not None
    assert up.answer.startswith("better, by less")


def test_few_queries_of_people_or_others_than_the_machine_graded_are_refused() -> None:
    machine = make_values("llm", 20, shift=0.1)
    people = take(make_values("people", 22, shift=0.1), 22)

    with pytest.raises(ConfigError, match=r"2 queries .* \(q20"):
        estimate(people, machine)

    with pytest.raises(ConfigError, match=r"people: .* 3 queries"):
        estimate(take(machine, 3), machine)


@pytest.mark.usefixtures("project")
def test_command_and_page_say_what_both_judges_say(capsys: Capture) -> None:
    assert main([*ESTIMATE, "--json"]) == 0

    record = json.loads(capsys.readouterr().out)
    assert (record["queries"], record["people_queries"]) == (cases.QUERIES, SAMPLED)
    [row] = record["differences"]
    assert row["candidate"] == "live"
    assert row["low"] <= row["difference"] <= row["high"]
    assert row["people"]["queries"] == SAMPLED
    assert row["judging"]["half_width"] == pytest.approx((row["high"] - row["low"]) / 2)
    assert row["judging"]["expected"]["60"] == pytest.approx(row["judging"]["least_half_width"])
    assert main([*ESTIMATE, "-v"]) == 0

    out = capsys.readouterr().out
    assert "against plain: not" in out
    assert "from 24 queries" in out
    assert "queries of people" in out


@pytest.mark.usefixtures("project")
def test_measures_of_the_command_replace_those_of_the_experiment(capsys: Capture) -> None:
    words = ["--measure", "nDCG(dcg='exp-log2')@5", "--measure", "P@1"]

    assert main([*ESTIMATE, *words, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["measures"] == ["nDCG(dcg='exp-log2')@5", "P@1"]
    assert [each["p_adjusted"] is None for each in record["differences"]] == [False, True]
    assert main([*ESTIMATE, "--measure", "nope"]) == 2
    assert "nope" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--human-judge", "picked"], "no random sample"),
        (["--human-judge", "volunteers"], "judges.volunteers"),
        (["--human-judge", "qrels"], "judges of mine"),
        (["--human-judge", "llm"], "kind is 'machine'"),
        (["--human-judge", "nobody"], "unknown judge 'nobody'"),
        (["--machine-judge", "qrels"], "kind is 'human'"),
        (
            ["--set", "systems.live={runs: [a, b], fusion: lambdamart}"],
            "system 'live' learns",
        ),
    ],
)
@pytest.mark.usefixtures("project")
def test_judges_and_systems_that_allow_no_estimate(
    words: list[str], message: str, capsys: Capture
) -> None:
    assert main([*ESTIMATE, *words]) == 2
    assert message in capsys.readouterr().err


def test_judgments_may_be_the_machine(project: Path, capsys: Capture) -> None:
    replace_in_dataset(project, "qrels: qrels.txt", "qrels: {path: llm.txt, kind: machine}")

    assert main([*ESTIMATE, "--json", "--machine-judge", "qrels"]) == 0
    by_qrels = json.loads(capsys.readouterr().out)["differences"]
    assert main([*ESTIMATE, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["differences"] == by_qrels


@pytest.mark.usefixtures("project")
def test_sample_grows_and_is_the_same_each_time(capsys: Capture) -> None:
    words = ["grades", "sample", cases.EXPERIMENT, "--machine-judge", "llm", "--n"]
    drawn = []
    for count in ("3", "5"):
        assert main([*words, count]) == 0
        drawn.append(capsys.readouterr().out.split())
    assert drawn[1][:3] == drawn[0]
    assert main([*words, "5", "--seed", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["queries"] != drawn[1]
    assert main([*words, "61"]) == 2
    assert "from 1 to 60" in capsys.readouterr().err


def test_each_query_is_drawn_as_often() -> None:
    queries = [f"q{n}" for n in range(10)]
    drawn = [query for seed in range(2_000) for query in draw_queries(queries, 3, seed=seed)]
    counts = np.unique(drawn, return_counts=True)[1]
    assert len(counts) == 10
    assert abs(counts - 600).max() < 4 * (2_000 * 0.3 * 0.7) ** 0.5
    assert draw_queries(queries[::-1], 3) == draw_queries(queries, 3)


def test_few_grades_of_people_are_no_estimate(project: Path, capsys: Capture) -> None:
    """As those of ``judge --next``, declared as a random sample: the machine graded far more."""
    rows = "".join(f"q{q} 0 {d} 0\n" for q in range(cases.QUERIES) for d in ("n0", "n1", "n2"))
    path = project / "datasets/mine/llm.txt"
    path.write_text((project / "datasets/mine/qrels.txt").read_text() + rows)
    assert main(ESTIMATE) == 2
    err = capsys.readouterr().err
    assert "missing grades" in err
    assert "--queries FILE" in err


JUDGE = ["judge", cases.EXPERIMENT, "--judge", "people"]


def test_people_judge_what_was_drawn_and_the_estimate_reads_it(
    project: Path, capsys: Capture
) -> None:
    sample = ["grades", "sample", cases.EXPERIMENT, "--machine-judge", "llm", "--n", "12"]
    assert main(sample) == 0
    drawn = capsys.readouterr().out
    (project / "sample.txt").write_text(f"\n{drawn}\n", encoding="utf-8")

    assert main([*JUDGE, "--queries", "sample.txt", "--export", "sheet.csv"]) == 0
    sheet = project / "sheet.csv"
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert {row["query"] for row in rows} == set(drawn.split())
    for row in rows:
        row["grade"] = "1" if row["document"] == f"d{row['query'][1:]}" else "0"
    assert sum(row["grade"] == "1" for row in rows) == 12  # though the judgments hold them
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert main([*JUDGE, "--import", "sheet.csv"]) == 0
    replace_in_dataset(project, "people: {path: people.txt", "people: {path: judgments/people.csv")
    capsys.readouterr()

    assert main([*ESTIMATE, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["people_queries"], record["queries"]) == (12, cases.QUERIES)
    assert record["unjudged"]["people"] == {"plain": 0, "live": 0}


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no query: name"), ("q1\nq999\n", "document for 1 query")],
)
def test_queries_that_cannot_be_judged_are_refused(
    text: str, message: str, project: Path, capsys: Capture
) -> None:
    (project / "sample.txt").write_text(text, encoding="utf-8")

    assert main([*JUDGE, "--queries", "sample.txt", "--list"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("others", [["--next", "5"], ["--write-qrels", "all.txt"]])
def test_options_that_sample_nothing_are_refused(
    others: list[str], project: Path, capsys: Capture
) -> None:
    (project / "sample.txt").write_text("q1\n", encoding="utf-8")

    assert main([*JUDGE, "--queries", "sample.txt", *others]) == 2
    assert "--queries" in capsys.readouterr().err
    assert main([*JUDGE, "--queries", "missing.txt", "--list"]) == 2
    assert "missing.txt" in capsys.readouterr().err


def test_judge_of_the_family_of_a_list_is_named(project: Path, capsys: Capture) -> None:
    replace_in_dataset(
        project, "{path: llm.txt, kind: machine", "{path: llm.txt, kind: machine, family: GPT"
    )
    replace_in_dataset(project, "a: {path: a.trec,", "a: {path: a.trec, family: gpt,")

    assert main(ESTIMATE) == 0
    assert "model family as a" in capsys.readouterr().out


def test_greatest_grades_that_differ_are_named(project: Path, capsys: Capture) -> None:
    path = project / "datasets/mine/people.txt"
    path.write_text(path.read_text("utf-8").replace(" 1\n", " 3\n"), encoding="utf-8")

    assert main(ESTIMATE) == 0
    assert "3 of 'people'" in capsys.readouterr().out
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

    assert main([*ESTIMATE, "-v"]) == 0
    assert "for these trials" in capsys.readouterr().out


def test_judges_need_no_judgments_beside_them(project: Path, capsys: Capture) -> None:
    replace_in_dataset(project, "qrels: qrels.txt\n", "")

    assert main([*ESTIMATE, "--json"]) == 0
    assert main([*ESTIMATE, "--machine-judge", "qrels"]) == 2
    assert "unknown judge 'qrels'" in capsys.readouterr().err
