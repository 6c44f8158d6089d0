"""The gate between trials of real search agents: the same agent is no regression of itself."""

import shutil
from itertools import combinations
from pathlib import Path

import pytest

from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.run import run_gate
from fusion_bench.gate.update import update_baseline
from tests.parity.data import parity_data

COLLECTIONS = ("biology", "economics", "robotics")
AGENTS = ("medium", "high", "ultrahigh")
EXPERIMENT = """\
dataset: mine
measures: [nDCG@10]
baseline: agent
systems: {agent: {runs: [agent]}}
gate: {checks: {nDCG@10: {max_drop: 0.005}}}
"""
#: Alarms that 27 pairs of trials may give.
MOST_ALARMS = 4


def write_lists(root: Path, agent: str, collection: str, *trials: int) -> GateInputs:
    source = parity_data("weaviate-agents") / f"bright-{collection}"
    folder = root / "datasets/mine"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(source / "qrels.txt", folder)
    for number in trials:
        name = f"effort-{agent}-{number}.trec.gz"
        shutil.copy(source / "runs" / name, folder / name)
    text = 'name: mine\nqrels: qrels.txt\nruns:\n  agent: {path: "effort-*.trec.gz"}\n'
    (folder / "dataset.yaml").write_text(text, encoding="utf-8")
    (root / "mine.yaml").write_text(EXPERIMENT, encoding="utf-8")
    return GateInputs(*read_experiment(root / "mine.yaml"), [root / "datasets"])


def gate(
    root: Path, collection: str, before: tuple[str, ...], after: tuple[str, ...]
) -> GateVerdict:
    verdict = compare(root, collection, before, after)
    assert verdict.refusals == ()
    return verdict


def compare(
    root: Path, collection: str, before: tuple[str, ...], after: tuple[str, ...]
) -> GateVerdict:
    path = root / "baseline.json"
    path.unlink(missing_ok=True)
    update_baseline(write_lists(root, before[0], collection, *map(int, before[1:])), path, "first")
    return run_gate(write_lists(root, after[0], collection, *map(int, after[1:])), path)


def test_one_trial_against_another_of_the_same_agent_rarely_alarms(tmp_path: Path) -> None:
    statuses = [
        gate(tmp_path, collection, (agent, first), (agent, second)).checks[0].status
        for collection in COLLECTIONS
        for agent in AGENTS
        for first, second in combinations("123", 2)
    ]
    assert len(statuses) == 27
    assert statuses.count("regressed") <= MOST_ALARMS


@pytest.mark.parametrize("agents", [("ultrahigh", "high"), ("high", "medium")])
def test_a_weaker_agent_is_a_regression_in_every_trial(
    tmp_path: Path, agents: tuple[str, str]
) -> None:
    before, after = ((agent, *"123") for agent in agents)
    [check] = gate(tmp_path, "biology", before, after).checks
    assert check.status == "regressed"
    assert check.trials is not None
    assert (check.trials.baseline, check.trials.candidate) == (3, 3)


def test_one_trial_of_an_unsteady_agent_is_no_candidate_for_three(tmp_path: Path) -> None:
    verdict = compare(tmp_path, "biology", ("medium", *"123"), ("medium", "2"))
    [refusal] = verdict.refusals
    assert "runs/agent has 1 repeat" in refusal
