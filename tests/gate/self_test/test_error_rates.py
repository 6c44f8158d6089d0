"""Error rates that agree with the stated ones, and faults that the self-test must show."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fusion_bench.gate.self_test.error_rates import SelfTestResult, measure_error_rates

from fusion_bench.cli import main
from fusion_bench.gate.checks import Check
from fusion_bench.gate.self_test import error_rates as self_test
from fusion_bench.gate.self_test import simulation
from fusion_bench.gate.self_test.page import build_self_test_page, write_self_test
from fusion_bench.gate.self_test.whole_command import CaseOutcome
from fusion_bench.stats import intervals
from fusion_bench.stats.corrections import randomization_p_values
from tests.gate import cases
from tests.texts import names_in_order
from tests.tiny import edit

RUNS = 300


def make_checks(size: int = 60, seed: int = 3) -> list[Check]:
    """Two correlated measures, and one that hardly changes; queries in pairs."""
    random = np.random.default_rng(seed)
    first = random.normal(0, 0.2, size) * (random.random(size) < 0.7)
    second = 0.5 * first + random.normal(0, 0.1, size)
    still = np.zeros(size)
    still[:3] = 0.5
    groups = np.arange(size) // 2
    base = np.full(size, 0.5)
    return [
        Check("c", None, name, 0.01, base, base + d, groups)
        for name, d in (("one", first), ("two", second), ("still", still))
    ]


@pytest.fixture(scope="module")
def result() -> SelfTestResult:
    return measure_error_rates(make_checks(), runs=RUNS, seed=5)


def test_every_promise_is_tried_and_holds(result: SelfTestResult) -> None:
    kinds = [(f.kind, f.check) for f in result.error_rates]
    assert kinds.count(("false alarm", "")) == 1
    for name in ("c / one", "c / two"):
        assert kinds.count(("single test", name)) == 1
        assert kinds.count(("false pass", name)) == 1
        assert kinds.count(("power", name)) == 6
    assert result.agrees
    assert list(result.skipped) == ["c / still"]
    assert "differ on 3 queries" in result.skipped["c / still"]
    assert all(f.low <= f.rate <= f.high for f in result.error_rates)


def test_detection_grows_with_the_drop(result: SelfTestResult) -> None:
    shares = [f.rate for f in result.error_rates if (f.kind, f.check) == ("power", "c / one")]
    assert shares == sorted(shares)
    assert shares[0] < 0.2
    assert shares[-1] > 0.9


def test_it_is_the_same_for_the_same_seed() -> None:
    checks = make_checks()[:1]
    first, again, other = (measure_error_rates(checks, runs=100, seed=s) for s in (5, 5, 6))
    assert again.error_rates == first.error_rates
    assert other.error_rates != first.error_rates


def test_a_test_that_rejects_too_often_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    real = randomization_p_values

    def lenient(*given: object, **options: object) -> object:
        return real(*given, **options) / 3  # type: ignore[arg-type]

    monkeypatch.setattr(simulation, "randomization_p_values", lenient)
    result = measure_error_rates(make_checks(), runs=RUNS, seed=5)
    wrong = {f.kind for f in result.error_rates if not f.agrees}
    assert "single test" in wrong
    assert not result.agrees
    assert "disagree with" in result.headline


def test_a_bound_that_is_too_low_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    low = {**vars(intervals), "t_quantile": lambda f, p: intervals.t_quantile(f, p) / 3}
    monkeypatch.setattr(simulation, "intervals", SimpleNamespace(**low))
    result = measure_error_rates(make_checks(), runs=RUNS, seed=5)
    assert {f.kind for f in result.error_rates if not f.agrees} == {"false pass"}


def test_without_a_check_that_can_be_tried_nothing_holds() -> None:
    still = [c for c in make_checks() if c.measure == "still"]
    result = measure_error_rates(still, runs=100)
    assert not result.agrees
    assert names_in_order(result.headline, "no check can", "differ on 3")


def test_too_few_groups_are_said_to_be_too_few() -> None:
    one, _, _ = make_checks()
    packed = Check("c", None, "one", 0.01, one.baseline, one.candidate, np.arange(60) // 20)
    result = measure_error_rates([packed], runs=100)
    assert result.skipped["c / one"].startswith("3 groups: too few")
    assert not result.agrees


def test_slices_of_a_collection_are_swapped_together() -> None:
    one, _, _ = make_checks()
    half = np.arange(60) < 30
    part = Check("c", "x", "one", 0.01, one.baseline[half], one.candidate[half], one.groups[half])
    checks = [self_test.group_check(c, 0.025, 1) for c in (one, part)]
    signs = self_test.draw_label_swaps(checks, 4, 1)["c"]
    assert signs.shape == (4, 30)
    assert checks[1].codes.tolist() == list(range(15))
    assert set(np.unique(signs)) == {-1, 1}


def test_the_page_and_the_json_have_every_rate(result: SelfTestResult, tmp_path: Path) -> None:
    page = build_self_test_page(result, "Self-test")
    [table] = page.sections[0].tables
    data = json.loads(result.model_dump_json())
    assert len(table.rows) == len(result.error_rates) == len(data["error_rates"])
    assert {row.tone for row in table.rows} == {"plain"}
    assert all(len(row.cells) == len(table.columns) for row in table.rows)
    assert [finding.key for finding in page.sections[0].findings] == ["skipped"]
    assert page.headline is not None
    assert page.headline.tone == "passed"
    assert data["agrees"] is True
    assert len(data["power_curves"]["c / one"]["power"]) == 121
    paths = write_self_test(result, page, tmp_path)
    assert [path.name for path in paths] == ["self-test.json", "self-test.md", "self-test.png"]
    assert paths[-1].read_bytes().startswith(b"\x89PNG")


def test_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(simulation, "HALVINGS", 20)
    answer = CaseOutcome(name="damaged", statuses=("fell",), exit_code=1, faults=())
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
    assert "100 runs each:" in out
    assert names_in_order(out, "1 answers", "all right")
    assert "live and plain." in out
    for name in ("md", "json", "png"):
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
