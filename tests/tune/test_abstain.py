"""The threshold of a tuned system: its signal from tuning queries, τ from held-out ones."""

import json
from pathlib import Path

import pytest

import fusion_bench as fb
from fusion_bench.cli import main
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.io.looks import read_ledger
from fusion_bench.stats.thresholds import count_needed
from fusion_bench.util.digests import hash_values
from tests.threshold_project import EXPERIMENT, make_project
from tests.tiny import edit

BLEND = "depth: 20, missing: below}"
TUNE = (
    "tune: {system: reranked, trials: 5, folds: 0, front: {trials: 0}, "
    "parameters: {fusion.k: own}}\n"
)


def tune(root: Path, abstain: str, monkeypatch: pytest.MonkeyPatch) -> tuple[dict, dict]:  # type: ignore[type-arg]
    """The stored threshold, and ``abstain`` of the tuned system."""
    edit(root, EXPERIMENT, BLEND, f"{BLEND}, abstain: {abstain}")
    path = root / EXPERIMENT
    path.write_text(path.read_text("utf-8") + TUNE, "utf-8")
    monkeypatch.chdir(root)
    assert main(["tune", EXPERIMENT, "--no-plots", "--no-html"]) == 0
    stored = json.loads((root / "reports/mine/tuning/tuning.json").read_text("utf-8"))["abstain"]
    experiment, _ = read_experiment(root / "reports/mine/tuning/tuned.yaml")
    tuned = experiment.systems["reranked tuned"].abstain
    assert tuned is not None
    return stored, tuned.model_dump()


@pytest.mark.parametrize("signal", ["any", "any, among: [fused top, rerank top]"])
def test_the_signal_is_chosen_on_tuning_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signal: str
) -> None:
    root = make_project(tmp_path, answerable=160, unanswerable=160)
    stored, tuned = tune(root, f"{{signal: {signal}, false_answers: 0.1}}", monkeypatch)
    chosen = stored["chosen"]
    assert (chosen["signal"], chosen["is_stated"]) == ("rerank top", False)
    assert count_needed(0.1) <= chosen["calibrating"] < 160
    assert chosen["kept"]["queries"] == pytest.approx(80, abs=1)
    assert chosen["against"]["difference"] > 0
    assert tuned == {
        "signal": "rerank top",
        "above": chosen["threshold"],
        "promised_false_answers": 0.1,
        "calibrated_on": chosen["calibrated_on"],
    }
    page = " ".join((root / "reports/mine/tuning/tuning.md").read_text("utf-8").split())
    assert f"Answer if rerank top of reranked is above {chosen['threshold']:.6g}" in page
    # The gate knows the queries that set the threshold.
    text = (root / "reports/mine/tuning/tuned.yaml").read_text("utf-8")
    gate = "gate: {system: reranked tuned, checks: {false answers: {max: 0.2}}}\n"
    (root / "experiments/tuned.yaml").write_text(text + gate, "utf-8")
    assert main(["gate", "experiments/tuned.yaml", "--update", "--reason", "first"]) == 2


def test_a_named_signal_needs_no_queries_to_choose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_project(tmp_path, unanswerable=90)
    stored, _ = tune(root, "{signal: rerank top, false_answers: 0.1}", monkeypatch)
    assert stored["chosen"]["is_stated"]
    assert stored["chosen"]["against"] is None


def test_too_few_queries_promise_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_project(tmp_path, unanswerable=40)
    stored, tuned = tune(root, "{signal: any, false_answers: 0.1}", monkeypatch)
    assert stored["chosen"] is None
    assert "29 are needed" in stored["reason"]
    assert tuned == {"signal": "any", "false_answers": 0.1}


def test_in_python_the_tuned_system_has_its_threshold(tmp_path: Path) -> None:
    root = make_project(tmp_path, answerable=160, unanswerable=160)
    system = System(
        "reranked",
        ["a", "b"],
        blend={"method": "replace", "reranker": "rr", "depth": 20, "missing": "below"},
        abstain={"signal": "any", "among": ["fused top", "rerank top"], "false_answers": 0.1},
    )
    found = fb.tune(root / "datasets/mine", system=system, trials=3, folds=0, allow_suspect=True)
    assert found.report.abstain is not None
    chosen, abstain = found.report.abstain.chosen, found.system.abstain
    assert chosen is not None
    assert abstain is not None
    assert (abstain.signal, abstain.above) == ("rerank top", chosen.threshold)
    assert abstain.calibrated_on == chosen.calibrated_on
    assert count_needed(0.1) <= chosen.calibrating < 160
    # The gate and eval find these queries in the ledger.
    [held_out] = [
        line
        for line in read_ledger(root / "datasets/mine/looks.jsonl")
        if len(line.queries) == chosen.calibrating
    ]
    assert hash_values(held_out.queries) == chosen.calibrated_on
