"""Rates and planted drops of the self-test, and faults that it must show."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.cli import main
from fusion_bench.gate import self_test, verdict
from fusion_bench.gate.checks import Check
from fusion_bench.gate.self_test import (
    SelfTestResult,
    build_self_test_page,
    measure_pass_rates,
    split_checks,
    write_self_test,
)
from fusion_bench.gate.self_test_command import CaseOutcome
from fusion_bench.stats.inference import RowInference
from fusion_bench.stats.values import Pair
from tests.gate import cases
from tests.texts import names_in_order
from tests.tiny import edit

RUNS = 200


def make_checks(size: int = 60, seed: int = 3) -> list[Check]:
    """Two correlated measures, and one that hardly changes; queries in pairs."""
    random = np.random.default_rng(seed)
    first = random.normal(0, 0.2, size) * (random.random(size) < 0.7)
    second = 0.5 * first + random.normal(0, 0.1, size)
    still = np.zeros(size)
    still[:3] = 0.5
    keys = tuple(f"g{q // 2}" for q in range(size))
    base = np.full(size, 0.5)
    return [
        Check("c", None, 0.01, Pair.from_arrays(base + d, base, keys, measure=name))
        for name, d in (("one", first), ("two", second), ("still", still))
    ]


def planted(root: Path) -> list[CaseOutcome]:
    tested, _ = split_checks(make_checks())
    return [*self_test.plant_drops(tested, cases.gate_inputs(root))]


def test_the_rates_hold_and_are_the_same_for_the_same_seed() -> None:
    tested, skipped = split_checks(make_checks())
    assert list(skipped) == ["c / still"]
    assert "differ on 3 queries" in skipped["c / still"]
    first, again, other = (
        [*measure_pass_rates(tested, runs=RUNS, seed=seed)] for seed in (5, 5, 6)
    )
    assert [rate.check for rate in first] == ["c / one", "c / two"]
    assert all(rate.agrees and rate.low <= rate.rate <= rate.high for rate in first)
    assert all(rate.count > 0 for rate in first)  # at m a pass is rare, and not impossible
    assert again == first != other


def test_a_lower_end_at_90_percent_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    lower_bound = RowInference.lower_bound
    monkeypatch.setattr(RowInference, "lower_bound", lambda row, a: lower_bound(row, 2 * a))
    tested, _ = split_checks(make_checks())
    assert not all(rate.agrees for rate in measure_pass_rates(tested, runs=RUNS, seed=5))


def test_planted_drops_have_the_known_answers(root: Path) -> None:
    outcomes = planted(root)
    assert [outcome.faults for outcome in outcomes] == [()] * 4
    assert [outcome.exit_code for outcome in outcomes] == [0, 3, 1, 0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("row.mean < -max_drop - NOISE and", ""),  # a shown drop within the tolerance
        ("row.p <= alpha", "False"),
        ("row.lower_bound(alpha)", "row.mean"),
        ("row.lower_bound(alpha) > -max_drop", "False"),
        ("row.mean < -max_drop", "row.mean > max_drop"),
    ],
)
def test_planted_drops_find_another_rule_out(
    root: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    source = Path(verdict.__file__).read_text(encoding="utf-8")
    assert source.count(old) == 1
    names = dict(vars(verdict))
    exec(source.replace(old, new), names)  # noqa: S102 - the code under test, with one change
    monkeypatch.setattr(verdict, "decide_status", names["decide_status"])
    assert any(outcome.faults for outcome in planted(root))


def test_too_few_groups_are_said_to_be_too_few() -> None:
    one, _, _ = make_checks()
    keys = tuple(f"g{q // 20}" for q in range(60))
    packed = replace(one, pair=replace(one.pair, keys=keys))
    tested, skipped = split_checks([packed])
    assert tested == []
    assert skipped["c / one"].startswith("3 groups, and")


def test_without_a_check_that_can_be_tried_nothing_holds() -> None:
    result = SelfTestResult(
        systems=("a", "b"), agrees=False, rates=(), cases=(), skipped={"c": "differ on 3"}
    )
    assert names_in_order(result.headline, "no check can", "differ on 3")


def test_slices_of_a_collection_share_the_drawn_groups() -> None:
    one, two, _ = make_checks()
    members = {one.pair.keys: self_test.list_members(one.pair.keys)}
    samples = [*self_test.sample_checks([one, two], members, np.random.default_rng(1))]
    assert samples[0].pair.keys == samples[1].pair.keys
    assert len(samples[0].pair.keys) == 60
    pairs = set(zip(one.pair.difference.tolist(), two.pair.difference.tolist(), strict=True))
    drawn = set(zip(*(each.pair.difference.tolist() for each in samples), strict=True))
    assert drawn <= pairs


def test_the_page_and_the_json_have_every_rate(root: Path, tmp_path: Path) -> None:
    tested, skipped = split_checks(make_checks())
    rates = tuple(measure_pass_rates(tested, runs=20, seed=5))
    wrong = CaseOutcome(name="x", statuses=("pass",), exit_code=0, faults=("it is no pass",))
    result = SelfTestResult(
        systems=("a", "b"),
        agrees=False,
        rates=rates,
        cases=(*planted(root), wrong),
        skipped=skipped,
    )
    page = build_self_test_page(result, "Self-test")
    table, answers = page.sections[0].tables
    assert [len(table.rows), len(answers.rows)] == [2, 5]
    assert [row.tone for row in answers.rows] == ["plain"] * 4 + ["failed"]
    assert [finding.key for finding in page.sections[0].findings] == ["skipped"]
    assert page.headline is not None
    assert page.headline.tone == "failed"
    assert names_in_order(result.headline, "20 runs each", "5 known answers", "1 wrong")
    paths = write_self_test(result, page, tmp_path / "out")
    assert [path.name for path in paths] == ["self-test.json", "self-test.md"]
    assert len(json.loads(paths[0].read_text())["rates"]) == 2


def test_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = CaseOutcome(name="damaged", statuses=("regressed",), exit_code=1, faults=())
    monkeypatch.setattr(self_test, "run_damaged_lists", lambda _: [answer])  # of few groups: none
    monkeypatch.chdir(cases.make_project(tmp_path))
    places = {q: 1 + (q * q + 3 * q // 4) % 5 for q in range(cases.QUERIES)}  # many values
    (tmp_path / "datasets/mine/b.trec").write_text(cases.run_lines(places, "b"))
    edit(tmp_path, cases.EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    command = ["gate", cases.EXPERIMENT, "--self-test", "--simulations", "100"]
    code = main([*command, "-v"])
    out, err = capsys.readouterr()
    assert code == 0
    assert all(line.startswith("progress: ") for line in err.splitlines())  # on a busy machine
    assert names_in_order(out, "100 runs each", "5 known answers", "all right")
    assert "live and plain." in out
    for name in ("md", "json"):
        assert (tmp_path / f"reports/mine/self-test.{name}").exists()
    assert main([*command, "--json", "--other-system", "plain", "--out", "there"]) == 0
    assert json.loads(capsys.readouterr()[0])["systems"] == ["plain", "live"]
    assert (tmp_path / "there/self-test.md").exists()
    assert main([*command, "--other-system", "dead"]) == 2
    assert "unknown system 'dead'" in capsys.readouterr()[1]


def test_it_needs_two_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(cases.make_project(tmp_path))
    edit(tmp_path, cases.EXPERIMENT, "  plain: {runs: [a, b]}\n", "")
    edit(tmp_path, cases.EXPERIMENT, "baseline: plain", "baseline: live")
    assert main(["gate", cases.EXPERIMENT, "--self-test"]) == 2
    assert "two different systems" in capsys.readouterr()[1]
