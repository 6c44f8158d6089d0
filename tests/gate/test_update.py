"""Updates of a baseline: what they change is kept, and one that changes nothing is refused."""

import subprocess
import sys
from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError, DataError, FusionBenchError
from fusion_bench.gate.baseline import Baseline, BaselineUpdate
from fusion_bench.gate.baseline_files import read_baseline
from fusion_bench.gate.formats import build_update_page
from tests.attacks.runner import child_environment
from tests.gate import cases
from tests.gate.cases import EXPERIMENT, gate_verdict, renew_baseline
from tests.gate.test_run import swap
from tests.tiny import edit


def stored(path: Path) -> Baseline:
    baseline = read_baseline(path)
    assert baseline is not None
    return baseline


def newest(path: Path) -> BaselineUpdate:
    return stored(path).history[-1]


def test_updates_keep_the_history_of_reasons(root: Path) -> None:
    path = renew_baseline(root, "first")
    swap(root, "{runs: [b]}")
    renew_baseline(root, "b is\n cheaper", anchor=True)
    found = read_baseline(path)
    assert isinstance(found, Baseline)
    assert [change.reasons for change in found.history] == [("first",), ("b is cheaper",)]
    means = [change.means["mine"]["RR@10"] for change in found.history]
    assert means[0] == 1
    assert means[1] < 1
    assert gate_verdict(root).exit_code == 0
    assert gate_verdict(root).baseline_reason == "b is cheaper"


@pytest.mark.parametrize("reason", [" \n", "\ud800"])
def test_a_reason_must_say_something(root: Path, reason: str) -> None:
    with pytest.raises(ConfigError, match="--reason"):
        renew_baseline(root, reason)
    assert not (root / "reports").exists()


def test_an_update_on_top_of_an_edited_file_is_refused(root: Path) -> None:
    path = renew_baseline(root)
    path.write_text(path.read_text().replace("first", "fake"))
    with pytest.raises(DataError, match="checksum does not"):
        renew_baseline(root, "second")


def test_an_update_keeps_old_and_new_values_and_the_largest_losses(root: Path) -> None:
    queries = root / "datasets/mine/queries.jsonl"
    queries.write_text(queries.read_text().replace('"q11",', '"q11", "text": "why so low?",'))
    path = renew_baseline(root)
    swap(root, "{runs: [b]}")
    asked = gate_verdict(root)
    renew_baseline(root, "b is cheaper", anchor=True)
    update = newest(path)
    assert update.verdict == asked.headline
    assert update.config_changes == {"runs": (["a"], ["b"])}
    assert [
        (check.name, check.status, check.old_mean, check.new_mean, check.changed)
        for check in update.checks
    ] == [
        (check.name, check.status, check.baseline_mean, check.candidate_mean, check.changed)
        for check in asked.checks
    ]
    assert [(loss.query, loss.old_value, loss.new_value) for loss in update.losses] == [
        (loss.query, loss.value_before, loss.value_after) for loss in asked.regressions
    ]
    assert {loss.query: loss.text for loss in update.losses}["q11"] == "why so low?"
    page = build_update_page(stored(path))
    assert page.headline is not None
    assert page.headline.tone == "failed"
    assert [row.tone for row in page.sections[0].tables[1].rows] == ["failed"] * 4


def test_an_update_to_new_lists_says_what_they_lose(root: Path) -> None:
    path = renew_baseline(root)
    edit(root, EXPERIMENT, "  system: live\n", "  system: live\n  lists: refuse\n")
    (root / "datasets/mine/a.trec").write_text((root / "datasets/mine/b.trec").read_text())
    renew_baseline(root, "rebuilt", anchor=True)
    update = newest(path)
    assert [(change.part, change.change) for change in update.list_changes] == [
        ("runs/a", "contents")
    ]
    assert {check.status for check in update.checks} == {"regressed"}
    assert gate_verdict(root).exit_code == 0


def test_an_update_with_new_judgments_cannot_be_compared(root: Path) -> None:
    path = renew_baseline(root)
    edit(root, "datasets/mine/qrels.txt", "q7 0 d7 1\n", "q7 0 n0 1\n")
    renew_baseline(root, "judged again", anchor=True)
    update = newest(path)
    assert "contents of qrels" in update.incomparable[0]
    assert (update.verdict, update.checks) == ("", ())
    page = build_update_page(stored(path))
    [means] = page.sections[0].tables
    assert means.rows[0].cells == ("mine / MRR@10", "1.0000", "0.9917")
    assert page.headline is not None
    assert page.headline.tone == "inconclusive"


def test_a_new_measure_hides_no_verdict_on_the_others(root: Path) -> None:
    path = renew_baseline(root)
    swap(root, "{runs: [b]}")
    edit(root, EXPERIMENT, "    RR@10: {max", "    AP@10: {max_drop: 0.1}\n    RR@10: {max")
    edit(root, EXPERIMENT, "  slices: [local]\n", "  guards: [{measure: P@1, max_loss: 0.5}]\n")
    renew_baseline(root, "b, and AP", anchor=True)
    update = newest(path)
    assert {(check.measure, check.status) for check in update.checks} == {
        ("RR@10", "regressed"),
        ("nDCG@10", "regressed"),
    }
    assert {text.split("values of ")[1].split(" ")[0] for text in update.incomparable} == {
        "AP@10",
        "P@1",
    }
    headline = build_update_page(stored(path)).headline
    assert headline is not None
    assert headline.tone == "failed"
    assert {check.measure for check in gate_verdict(root).checks} == {"AP@10", "RR@10", "nDCG@10"}


def test_only_new_measures_cannot_be_compared(root: Path) -> None:
    path = renew_baseline(root)
    for name in ("RR@10", "nDCG@10"):
        edit(root, EXPERIMENT, f"    {name}: {{max", f"    {name[:-2]}5: {{max")
    renew_baseline(root, "other measures")
    update = newest(path)
    assert (update.checks, update.verdict, len(update.incomparable)) == ((), "", 2)


def test_an_update_that_changes_nothing_needs_a_new_reason(root: Path) -> None:
    path = renew_baseline(root, "first")
    before = path.read_bytes()
    with pytest.raises(FusionBenchError, match=r"json: nothing .*--reason"):
        renew_baseline(root, " first\n")
    assert path.read_bytes() == before
    old = stored(path)
    renew_baseline(root, "agreed")
    new = stored(path)
    assert [update.reasons for update in new.history] == [("first", "agreed")]
    assert new.contents == old.contents
    assert new.history[0].updated_at == old.history[0].updated_at
    assert gate_verdict(root).baseline_reason == "first; agreed"
    with pytest.raises(FusionBenchError, match="nothing to update"):
        renew_baseline(root, "first")


@pytest.mark.parametrize(
    ("name", "old", "new", "statuses"),
    [
        (EXPERIMENT, "RR@10: {max_drop: 0.01}", "RR@10: {max_drop: 0.02}", {"unchanged"}),
        (EXPERIMENT, "{runs: [a]}", "{runs: [a], depth: 4}", {"unchanged"}),
        ("datasets/mine/a.trec", "q7 Q0 n0 2 0.8 a", "q7 Q0 n0 2 0.81 a", {"unchanged"}),
        ("datasets/mine/queries.jsonl", '"q0", "type": "global"', '"q0", "type": "other"', set()),
    ],
)
def test_policy_configuration_and_contents_are_changes(
    root: Path, name: str, old: str, new: str, statuses: set[str]
) -> None:
    path = renew_baseline(root, "first")
    edit(root, name, old, new)
    renew_baseline(root, "first", anchor=not statuses)
    assert len(stored(path).history) == 2
    assert {check.status for check in newest(path).checks} == statuses


def test_the_gate_names_a_policy_that_changed(root: Path) -> None:
    renew_baseline(root)
    edit(root, EXPERIMENT, "    RR@10: {max_drop: 0.01}", "    RR@10: {max_drop: 0.005}")
    result = gate_verdict(root)
    assert (result.exit_code, result.outcome) == (0, "passed")
    [change] = result.policy_changes
    assert (change.path, change.before, change.after) == ("checks.RR@10.max_drop", 0.01, 0.005)
    assert change.effect == "stricter"


def test_an_update_remembers_what_it_loosened(root: Path) -> None:
    path = renew_baseline(root)
    edit(root, EXPERIMENT, "    RR@10: {max_drop: 0.01}", "    RR@10: {max_drop: 0.2}")
    refused = gate_verdict(root)
    assert refused.exit_code == 2
    [text] = refused.refusals
    assert "max_drop 0.01 → 0.2 (looser)" in text
    assert "fusion-bench gate" in text
    assert "--update --reason" in text
    renew_baseline(root, "RR@10 is too noisy")
    assert gate_verdict(root).exit_code == 0
    [change] = newest(path).policy_changes
    assert (change.before, change.after, change.effect) == (0.01, 0.2, "looser")
    findings = build_update_page(stored(path)).sections[0].findings
    assert [finding.tone for finding in findings if finding.key == "policy"] == ["warning"]


#: Generous: an update takes a second.
LIMIT = 240
REASONS = tuple(f"reason {i}" for i in range(4))
#: Forks a process for each reason, once everything is imported: they start together.
UPDATES = """
import os, sys
from fusion_bench.cli import gate, main
from fusion_bench.gate import run

def update_baseline(reason):
    if child := os.fork():
        return child
    os._exit(main(["gate", sys.argv[1], "--update", "--reason", reason]))

children = [update_baseline(reason) for reason in sys.argv[2:]]
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""


@pytest.mark.slow
def test_no_reason_is_lost(root: Path) -> None:
    baseline = cases.renew_baseline(root)
    done = subprocess.run(
        [sys.executable, "-c", UPDATES, cases.EXPERIMENT, *REASONS],
        cwd=root,
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "[0, 0, 0, 0]", done.stderr
    kept = read_baseline(baseline)
    assert kept is not None
    [update] = kept.history
    assert update.reasons[0] == "first"
    assert set(update.reasons[1:]) == set(REASONS)
    assert [path.name for path in baseline.parent.iterdir()] == ["mine.json"]
