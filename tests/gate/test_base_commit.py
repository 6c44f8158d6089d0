"""What a change starts from: the baseline of another commit, and lists that came with it."""

import shutil
from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.gate.baseline_files import read_baseline
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.run import run_gate
from fusion_bench.gate.update import write_baseline
from fusion_bench.util.files import baseline_path
from tests.gate import cases
from tests.gate.cases import EXPERIMENT, gate_inputs, renew_baseline
from tests.git_project import commit_all, run_git
from tests.texts import names_in_order
from tests.tiny import edit

BASELINE = baseline_path(Path(EXPERIMENT))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    cases.make_project(tmp_path)
    renew_baseline(tmp_path)
    commit_all(tmp_path)
    edit(tmp_path, "datasets/mine/a.trec", "q7 Q0 n0 2 0.8 a", "q7 Q0 n0 2 0.81 a")
    return tmp_path


def gate_against(root: Path, base: str | None) -> GateVerdict:
    return run_gate(gate_inputs(root), root / BASELINE, base)


def test_changed_lists_block_without_a_commit_that_holds_the_baseline(root: Path) -> None:
    verdict = gate_against(root, None)
    assert verdict.exit_code == 3
    assert {check.status for check in verdict.checks} == {"unchanged"}
    assert names_in_order(
        verdict.headline, "(mine: runs/a changed)", "blocked", "(4 unchanged)", "lists changed"
    )
    commit_all(root)
    accepted = gate_against(root, "main~1")
    assert (accepted.exit_code, accepted.unreproduced_accepted_by) == (0, "base")
    assert names_in_order(accepted.headline, "(mine: runs/a changed;", "that of main~1)", "passed")


@pytest.mark.parametrize("folder", ["reports", "reports/baselines"])
def test_a_repository_of_its_own_does_not_vouch_for_a_forged_baseline(
    root: Path, folder: str
) -> None:
    renew_baseline(root, "forged")
    run_git(root / folder, "init", "--quiet", "--initial-branch=main")
    commit_all(root / folder)
    with pytest.raises(ConfigError, match="hold different files"):
        gate_against(root, "HEAD")


@pytest.mark.parametrize("field", ["seed", "anchor"])
def test_a_baseline_that_was_edited_without_an_update_is_refused(root: Path, field: str) -> None:
    path = root / BASELINE
    old = read_baseline(path)
    assert old is not None
    forged = {"seed": 11, "anchor": old.anchor.model_copy(update={"reason": "another"})}
    edited = old.model_copy(update={field: forged[field]})
    newest = old.history[-1].model_copy(update={"is_anchor": False})
    write_baseline(edited.model_copy(update={"history": (newest,)}), path)
    edit(root, EXPERIMENT, "dataset: mine", f"dataset: mine\nseed: {edited.seed}")
    assert "without an update" in gate_against(root, "main").refusals[0]


def test_a_reason_may_be_added_and_the_anchor_blessed(root: Path) -> None:
    edit(root, "datasets/mine/a.trec", "q7 Q0 n0 2 0.81 a", "q7 Q0 n0 2 0.8 a")
    renew_baseline(root, "another reason")
    assert gate_against(root, "main").exit_code == 0


def test_a_new_baseline_that_is_reproduced_passes(root: Path) -> None:
    renew_baseline(root, "a new index")
    verdict = gate_against(root, "main")
    assert (verdict.exit_code, verdict.is_base, verdict.unreproduced) == (0, False, ())


def test_only_the_policy_of_the_commit_accepts(root: Path) -> None:
    edit(root, EXPERIMENT, "  system: live\n", "  system: live\n  unreproduced: accept\n")
    renew_baseline(root, "trust the file")
    edit(root, "datasets/mine/a.trec", "q7 Q0 n0 2 0.81 a", "q7 Q0 n0 2 0.82 a")
    assert gate_against(root, None).exit_code == 0
    assert gate_against(root, "main").exit_code == 3
    commit_all(root)
    renew_baseline(root, "again")
    edit(root, "datasets/mine/a.trec", "q7 Q0 n0 2 0.82 a", "q7 Q0 n0 2 0.83 a")
    accepted = gate_against(root, "main")
    assert (accepted.exit_code, accepted.unreproduced_accepted_by) == (0, "policy")


def test_an_older_baseline_is_refused(root: Path) -> None:
    path = root / BASELINE
    old = root / "old.json"
    shutil.copy(path, old)
    renew_baseline(root, "a new index")
    commit_all(root)
    shutil.copy(old, path)
    [refusal] = gate_against(root, "main").refusals
    assert names_in_order(refusal, "that of main", "its history lacks")
    path.unlink()
    renew_baseline(root, "written anew")
    baseline = read_baseline(path)
    assert baseline is not None
    later = baseline.history[0].model_copy(update={"updated_at": "2030-01-01T00:00:00+00:00"})
    write_baseline(baseline.model_copy(update={"history": (later,)}), path)
    assert "does not follow" in gate_against(root, "main").refusals[0]


def test_a_commit_without_a_baseline_of_this_version_refuses_nothing(root: Path) -> None:
    path = root / BASELINE
    kept = path.read_text()
    path.write_text("{}")
    commit_all(root)
    path.write_text(kept)
    assert gate_against(root, "main").exit_code == 3
    path.unlink()
    commit_all(root)
    path.write_text(kept)
    assert gate_against(root, "main").exit_code == 3
