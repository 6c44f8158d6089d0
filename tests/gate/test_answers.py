"""The checks of what a system answers: a limit of false answers, a drop of answered queries."""

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
import yaml

from fusion_bench.api.threshold import threshold
from fusion_bench.cli import main
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.system import System
from fusion_bench.gate.self_test import run_self_test
from fusion_bench.gate.verdict import decide_false_answers
from fusion_bench.stats.thresholds import allowed_answers
from tests.docs.printed import ROOT, parse_console
from tests.gate.cases import EXPERIMENT, gate_inputs, gate_verdict, renew_baseline
from tests.threshold_project import make_project
from tests.tiny import edit

CHECKS = "answered: {max_drop: 0.05}, false answers: {max: 0.2}"
BLEND = "depth: 20, missing: below}"
LEDGER = "datasets/mine/looks.jsonl"


def guard_reranked(
    root: Path, *, split: str = "dev", above: float | None = None, checks: str = CHECKS
) -> float:
    """Let ``reranked`` abstain below the threshold of one split, and gate it on the other."""
    path = root / EXPERIMENT
    text = path.read_text("utf-8")
    path.write_text(f"{text}split: {split}\n", encoding="utf-8")
    chosen = threshold(path, systems=["reranked"], signal="rerank top").collections[0].chosen
    assert chosen is not None
    assert chosen.threshold is not None
    value = chosen.threshold if above is None else above
    abstain = f"{{signal: rerank top, above: {value}, calibrated_on: {chosen.calibrated_on}}}"
    text = text.replace(BLEND, f"{BLEND}, abstain: {abstain}")
    path.write_text(f"{text}gate: {{system: reranked, checks: {{{checks}}}}}\n", "utf-8")
    return value


def change_threshold(root: Path, old: float, new: float) -> None:
    edit(root, EXPERIMENT, f"above: {old}", f"above: {new}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_project(tmp_path, answerable=240, unanswerable=240, splits=True)


def test_a_threshold_of_other_queries_passes(root: Path) -> None:
    guard_reranked(root)
    renew_baseline(root)
    found = gate_verdict(root)
    [answered], [false] = found.checks, found.false_answers
    assert (found.exit_code, answered.status, false.status) == (0, "unchanged", "pass")
    assert (answered.measure, answered.queries, false.queries) == ("answered", 120, 120)
    assert answered.baseline_mean is not None
    assert answered.baseline_mean > 0.8
    assert false.answered <= allowed_answers(120, 0.2)


def test_a_higher_threshold_answers_fewer_queries(root: Path) -> None:
    value = guard_reranked(root)
    renew_baseline(root)
    change_threshold(root, value, value + 1)
    found = gate_verdict(root)
    [answered] = found.checks
    assert (found.exit_code, answered.status) == (1, "regressed")
    assert answered.losses == answered.changed > 10
    assert answered.difference == pytest.approx(-answered.losses / 120)


def test_a_lower_threshold_answers_unanswerable_queries(root: Path) -> None:
    value = guard_reranked(root)
    renew_baseline(root)
    change_threshold(root, value, 2.5)
    found = gate_verdict(root)
    assert (found.exit_code, found.false_answers[0].status) == (1, "regressed")
    assert found.checks[0].status == "pass"
    assert "2 checks (1 pass, 1 regressed)" in found.headline


def test_the_queries_that_set_the_threshold_are_refused(root: Path) -> None:
    guard_reranked(root, split="test")
    for _ in ("by the ledger", "because the two sets are equal"):
        with pytest.raises(ConfigError, match="120 of these 120 unanswerable"):
            renew_baseline(root)
        (root / LEDGER).unlink(missing_ok=True)


def move_queries(root: Path, split: str, numbers: Iterable[int]) -> None:
    queries = root / "datasets/mine/queries.jsonl"
    records = [json.loads(line) for line in queries.read_text("utf-8").splitlines()]
    for number in numbers:
        assert records[number]["answerable"] is False
        records[number]["split"] = split
    queries.write_text("".join(f"{json.dumps(each)}\n" for each in records), "utf-8")


@pytest.mark.parametrize(
    ("numbers", "shared"), [([240], "1 of these 121"), (range(240, 480), "120 of these 240")]
)
def test_queries_of_which_some_set_the_threshold_are_refused(
    root: Path, numbers: Sequence[int], shared: str
) -> None:
    guard_reranked(root)
    move_queries(root, "test", numbers)
    with pytest.raises(ConfigError, match=f"{shared} unanswerable"):
        renew_baseline(root)


def test_a_part_of_the_queries_that_set_the_threshold_is_refused(root: Path) -> None:
    move_queries(root, "dev", range(240, 480))
    guard_reranked(root)
    move_queries(root, "test", range(400, 480))
    with pytest.raises(ConfigError, match="80 of these 80 "):
        renew_baseline(root)
    # Without the ledger only equal sets are recognized.
    (root / LEDGER).unlink()
    renew_baseline(root)


def test_the_half_that_set_the_threshold_is_refused_too(root: Path) -> None:
    chosen = threshold(root / EXPERIMENT).collections[0].chosen
    assert chosen is not None
    assert not chosen.is_stated
    guard_reranked(root)
    text = (root / EXPERIMENT).read_text("utf-8")
    digest = text.partition("calibrated_on: ")[2][:64]
    (root / EXPERIMENT).write_text(text.replace(digest, chosen.calibrated_on), "utf-8")
    with pytest.raises(ConfigError, match="of these 120 unanswerable"):
        renew_baseline(root)


def test_a_candidate_that_answers_all_is_refused(root: Path) -> None:
    guard_reranked(root)
    renew_baseline(root)
    text = (root / EXPERIMENT).read_text("utf-8")
    start, _, rest = text.partition(", abstain: ")
    without = f"{start}{rest.partition('}')[2]}"
    (root / EXPERIMENT).write_text(without, "utf-8")
    with pytest.raises(ConfigError, match=r"'abstain', which gate\.checks"):
        gate_verdict(root)
    with pytest.raises(ConfigError, match=r"'abstain', which gate\.checks"):
        renew_baseline(root, "all are answered")


def test_a_baseline_with_a_threshold_needs_one(root: Path) -> None:
    guard_reranked(root, checks="nDCG@10: {max_drop: 0.05}")
    renew_baseline(root)
    text = (root / EXPERIMENT).read_text("utf-8")
    start, _, rest = text.partition(", abstain: ")
    (root / EXPERIMENT).write_text(f"{start}{rest.partition('}')[2]}", "utf-8")
    with pytest.raises(ConfigError, match="'abstain', which the baseline"):
        gate_verdict(root)
    renew_baseline(root, "answer every query")
    assert gate_verdict(root).exit_code == 0


def test_a_signal_that_is_missing_is_no_pass(root: Path) -> None:
    guard_reranked(root)
    renew_baseline(root)
    edit(root, "datasets/mine/dataset.yaml", "score_space: unbounded", "score_space: order")
    with pytest.raises(UnknownNameError, match="'rerank top'"):
        gate_verdict(root)


def test_without_unanswerable_queries_nothing_is_checked(root: Path) -> None:
    guard_reranked(root)
    queries = root / "datasets/mine/queries.jsonl"
    queries.write_text(queries.read_text("utf-8").replace(', "answerable": false', ""), "utf-8")
    with pytest.raises(ConfigError, match="false answers: no"):
        renew_baseline(root)


@pytest.mark.parametrize(
    ("answered", "queries", "status"),
    [(0, 28, "inconclusive"), (0, 29, "pass"), (3, 30, "inconclusive"), (7, 30, "regressed")],
)
def test_limits_decide(answered: int, queries: int, status: str) -> None:
    found = decide_false_answers("mine", answered, queries, 0.1)
    assert found.status == status
    assert (found.high <= 0.1) == (answered <= allowed_answers(queries, 0.1))
    # Of more candidates each has a lower level.
    assert decide_false_answers("mine", answered, queries, 0.1, 0.01).high > found.high


def test_an_open_check_names_the_queries_that_would_do() -> None:
    found = decide_false_answers("mine", 2, 40, 0.1)
    assert found.needed is not None
    more = decide_false_answers("mine", round(found.needed / 20), found.needed, 0.1)
    assert more.status == "pass"
    fewer = found.needed * 3 // 4
    assert decide_false_answers("mine", fewer // 20 + 1, fewer, 0.1).status == "inconclusive"
    assert f"about {found.needed:,} unanswerable queries" in found.description
    at_limit = decide_false_answers("mine", 4, 40, 0.1)
    assert at_limit.needed is None
    assert "leads to a pass" in at_limit.description


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ("max: 0.2", "max: 0.3", "checks.false answers.max 0.2 → 0.3 (looser)"),
        (", false answers: {max: 0.2}", "", "checks.false answers.max 0.2 → none (looser)"),
        ("max_drop: 0.05", "max_drop: 0.1", "checks.answered.max_drop 0.05 → 0.1 (looser)"),
    ],
)
def test_a_looser_policy_is_refused(root: Path, old: str, new: str, change: str) -> None:
    guard_reranked(root)
    renew_baseline(root)
    edit(root, EXPERIMENT, old, new)
    found = gate_verdict(root)
    assert found.exit_code == 2
    assert change in found.refusals[0]


def test_the_command_writes_and_prints_both_checks(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    value = guard_reranked(root, checks=f"nDCG@10: {{max_drop: 0.05}}, {CHECKS}")
    monkeypatch.chdir(root)
    assert main(["gate", EXPERIMENT, "--update", "--reason", "first"]) == 0
    change_threshold(root, value, 2.5)
    capsys.readouterr()
    assert main(["gate", EXPERIMENT]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "false answers: regressed" in printed
    stored = json.loads((root / "reports/mine/gate.json").read_text("utf-8"))
    assert [each["measure"] for each in stored["checks"]] == ["nDCG@10", "answered"]
    [false] = stored["false_answers"]
    assert (false["status"], false["max"]) == ("regressed", 0.2)
    assert 'name="mine / false answers"' in (root / "reports/mine/gate.xml").read_text("utf-8")
    assert "Answered unanswerable queries" in (root / "reports/mine/gate.md").read_text("utf-8")


def test_an_update_says_what_became_of_the_answers(root: Path) -> None:
    value = guard_reranked(root)
    renew_baseline(root)
    change_threshold(root, value, value - 0.1)
    renew_baseline(root, "lower")
    assert gate_verdict(root).checks[0].status == "unchanged"


def test_the_anchor_sums_up_what_is_no_longer_answered(root: Path) -> None:
    value = guard_reranked(root)
    renew_baseline(root)
    change_threshold(root, value, value + 0.1)
    found = gate_verdict(root)
    assert [each.reference for each in found.checks] == ["baseline"]
    renew_baseline(root, "higher")
    change_threshold(root, value + 0.1, value + 0.2)
    assert [each.reference for each in gate_verdict(root).checks] == ["baseline", "anchor"]


def test_the_self_test_plants_shares(root: Path) -> None:
    guard_reranked(root, checks=f"nDCG@10: {{max_drop: 0.05}}, {CHECKS}")
    found = run_self_test(gate_inputs(root), runs=100)
    names = [each.name for each in found.cases]
    assert "planted: a share of max is answered" in names
    assert not [each for each in found.cases if each.faults]
    assert "mine / answered" in {*found.skipped, *(rate.check for rate in found.rates)}


@pytest.mark.parametrize(
    ("gate", "complaint"),
    [
        ("gate: {answered: {}}", "answered: give a number as max_drop"),
        ("gate: {false answers: {max_drop: 0.1}}", "unknown key 'max_drop'"),
        ("gate: {false answers: {max: 1}}", "less than 1"),
    ],
)
def test_what_a_policy_may_ask(root: Path, gate: str, complaint: str) -> None:
    path = root / EXPERIMENT
    path.write_text(f"{path.read_text('utf-8')}{gate}\n", "utf-8")
    with pytest.raises(ConfigError, match=complaint):
        gate_inputs(root)


def test_the_page_on_thresholds_ends_with_a_gate_that_passes(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/thresholds.md").read_text("utf-8")
    section = page.partition("## Hold the limit in a gate\n")[2]
    blocks = re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)
    assert [language for language, _ in blocks] == ["console", "yaml", "console", "yaml"]
    monkeypatch.chdir(root)
    commands = [parse_console(text) for language, text in blocks if language == "console"]
    for place, (command, shown) in enumerate([*commands[0], *commands[1]]):
        if place == 1:
            careful = root / "experiments/careful.yaml"
            assert "split: dev" not in careful.read_text("utf-8")
            careful.write_text(careful.read_text("utf-8") + blocks[1][1], "utf-8")
        assert main(shlex.split(command)[1:]) == 0
        assert shown.strip() in capsys.readouterr().out
    abstain = yaml.safe_load(blocks[3][1])["abstain"]
    assert System(
        "x", ["a"], blend={"method": "replace", "reranker": "rr"}, abstain=abstain
    ).abstain
