"""``power`` reads a report's differences or assumes a spread; page and command show the plan."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusion_bench as fb
from fusion_bench.cli import main
from fusion_bench.errors import FusionBenchError
from fusion_bench.report.power_page import build_power_page
from fusion_bench.stats.power import sidak_tail

QUERIES = 60


@pytest.fixture(scope="module")
def report() -> fb.Report:
    rng = np.random.default_rng(5)
    qrels = {f"q{i}": {"d": 1} for i in range(QUERIES)}

    def make_run() -> dict[str, dict[str, float]]:
        return {
            query: {"d": float(rng.integers(1, 6)) + 0.5, **{f"x{i}": float(i) for i in range(6)}}
            for query in qrels
        }

    runs = {name: make_run() for name in ("base", "one", "two")}
    return fb.compare(qrels, runs, measures="RR@10", seed=3).report


def test_a_report_gives_spread_and_family(report: fb.Report) -> None:
    plan = fb.power(report, system="two", differences=[0.05])
    rows = report.collections[0]
    values = {row.name: np.array(row.measures["RR@10"].values, float) for row in rows.systems}
    assert plan.spread.sd == pytest.approx(np.std(values["two"] - values["base"], ddof=1))
    assert (plan.systems, plan.is_family, plan.spread.queries) == (2, True, QUERIES)
    stored = rows.comparison("two", "RR@10")
    assert stored is not None
    assert plan.rules[0].critical_value == stored.critical_value
    assert plan.rules[0].detectable == pytest.approx(stored.min_detectable_difference, rel=0.02)
    assert plan.rules[1].critical_value < plan.rules[0].critical_value


def test_more_systems_or_another_level_take_the_upper_bound(report: fb.Report) -> None:
    plan = fb.power(report, systems=20)
    assert not plan.is_family
    assert plan.rules[0].critical_value > fb.power(report).rules[0].critical_value
    assert fb.power(report, alpha=0.05).is_family
    plan = fb.power(report, alpha=0.1)
    assert not plan.is_family
    assert plan.rules[0].tail == pytest.approx(sidak_tail(2, 0.1))


def test_a_plan_of_an_assumed_spread() -> None:
    plan = fb.power(sd=0.2, queries=400, differences=[0.02], checks=4)
    assert {rule.name: round(rule.tail, 4) for rule in plan.rules} == {
        "better or worse": 0.025,
        "ship": 0.02,
        "regressed": 0.0063,
        "pass": 0.05,
    }
    assert plan.to_pandas()["queries"].tolist() == [790, 850, 1200, 620]
    assert plan.to_dict()["comparison"] is None
    assert "sd 0.2" in repr(plan)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sd": 0.2, "system": "one"},
        {"sd": 0.2, "collection": "x"},
        {"sd": 0.2, "checks": 0},
        {"sd": 0.2, "systems": 0},
        {"sd": 0.2, "power": 0.4},
        {"sd": 0.2, "alpha": 2.0},
        {"report": True, "sd": 0.2},
        {"report": True, "queries": 5},
        {"report": True, "system": "three"},
        {"report": True, "system": "base"},
        {"report": True, "collection": "other"},
    ],
)
def test_refuses(report: fb.Report, options: dict[str, Any]) -> None:
    given = {**options, **({"report": report} if "report" in options else {})}
    with pytest.raises(FusionBenchError):
        fb.power(**given)


def test_a_system_that_differs_nowhere_tells_no_spread() -> None:
    qrels = {"q1": {"d1": 1}, "q2": {"d1": 1}}
    run = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d1": 1.0, "d2": 2.0}}
    same = fb.compare(qrels, {"a": run, "b": run}, measures="RR@10").report
    with pytest.raises(FusionBenchError, match="on every query"):
        fb.power(same)


def test_few_changed_queries_are_said() -> None:
    qrels = {f"q{i}": {"d": 1} for i in range(40)}
    base = {query: {"d": 2.0, "x": 1.0} for query in qrels}
    other = {q: {"d": 2.0 - 1.5 * (i < 7), "x": 1.0} for i, q in enumerate(qrels)}
    report = fb.compare(qrels, {"base": base, "other": other}, measures="RR@10").report
    plan = fb.power(report)
    keys = [each.key for section in build_power_page(plan).sections for each in section.findings]
    assert "few changed queries" in keys
    needed = plan.rules[0].differences[0].needed
    assert needed is not None
    assert needed.at_least


def test_the_command_prints_json_and_draws(
    report: fb.Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, plot = tmp_path / "report.json", tmp_path / "power.png"
    path.write_text(report.model_dump_json())
    words = ["power", "--from", str(path), "--difference", ".02", "--plot", str(plot), "--json"]
    assert main(words) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["comparison"]["baseline"] == "base"
    assert [each["difference"] for each in record["rules"][0]["differences"]] == [0.02]
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "words",
    [[], ["--sd", "0"], ["--sd", ".2", "--difference", "0"], ["--sd", ".1", "--plot", "a.x"]],
)
def test_the_command_refuses(words: list[str]) -> None:
    assert main(["power", *words]) == 2
