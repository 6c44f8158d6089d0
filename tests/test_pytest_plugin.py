"""The fixture, in a real pytest run of its own and by its parts."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fusion_bench.pytest_plugin import FusionGate, GateWarning
from tests.gate import cases
from tests.gate.cases import EXPERIMENT, renew_baseline
from tests.gate.test_run import noisy
from tests.tiny import edit

#: Each of the project's experiments: without a baseline, unchanged, and worse than its baseline.
TEST = """
import pytest

@pytest.mark.parametrize("name", ["new", "same", "worse"])
def test_search_config(fusion_gate, name):
    assert fusion_gate(f"experiments/{name}.yaml").exit_code == 0
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("RAG_FUSION_V2_ENABLED", raising=False)
    return cases.make_project(tmp_path)


def test_in_a_run_of_its_own(root: Path) -> None:
    (root / "test_it.py").write_text(TEST)
    (root / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    for name in ("new", "same", "worse"):
        shutil.copy(root / EXPERIMENT, root / f"experiments/{name}.yaml")
        if name != "new":
            renew_baseline(root, name=f"experiments/{name}.yaml")
    edit(root, "experiments/worse.yaml", "live: {runs: [a]}", "live: {runs: [b]}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "fusion_bench.pytest_plugin"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "2 failed, 1 passed" in done.stdout
    assert "no baseline at" in done.stdout
    assert "drops by 0.4792, allowed 0.01" in done.stdout
    assert "Baseline 1.0000" in done.stdout
    assert "mine, query q11" in done.stdout
    assert "Traceback" not in done.stdout


def test_what_passes_is_returned(root: Path) -> None:
    path = renew_baseline(root)
    gate = FusionGate(root)
    assert gate(EXPERIMENT).exit_code == 0
    assert gate(root / EXPERIMENT, baseline=path, datasets=["datasets"]).exit_code == 0


def test_values_of_the_experiment_can_be_replaced(root: Path) -> None:
    renew_baseline(root)
    with pytest.raises(pytest.fail.Exception, match="regressed"):
        FusionGate(root)(EXPERIMENT, changes=["systems.live.runs=[b]"])
    with pytest.raises(TypeError, match=r"'set': write changes=\["):
        FusionGate(root)(EXPERIMENT, set={"systems.live.runs": ["b"]})


def test_what_is_wrong_fails_the_test_in_one_line(root: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"gate: .*no\.yaml: "):
        FusionGate(root)("experiments/no.yaml")


@pytest.mark.parametrize("policy", ["block", "warn"])
def test_the_policy_holds_here_too(root: Path, policy: str) -> None:
    noisy(root)
    edit(root, EXPERIMENT, "  system: live\n", f"  system: live\n  inconclusive: {policy}\n")
    renew_baseline(root)
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    gate = FusionGate(root)
    if policy == "block":
        with pytest.raises(pytest.fail.Exception, match="inconclusive: 2 checks"):
            gate(EXPERIMENT)
    else:
        with pytest.warns(GateWarning, match="minimum detectable drop"):
            gate(EXPERIMENT)
