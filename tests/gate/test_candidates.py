"""Several candidates share the level, and are counted."""

import json
from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError, DataError
from fusion_bench.gate.baseline_files import CANDIDATES, candidates_path, read_baseline
from fusion_bench.gate.page import format_text
from fusion_bench.gate.run import run_gate
from fusion_bench.gate.update import write_baseline
from tests.gate import cases
from tests.gate.cases import EXPERIMENT, gate_inputs, gate_verdict, renew_baseline
from tests.gate.test_run import swap
from tests.git_project import commit_all
from tests.texts import names_in_order
from tests.tiny import edit


@pytest.fixture
def root(tmp_path: Path) -> Path:
    cases.make_project(tmp_path)
    edit(tmp_path, EXPERIMENT, "  system: live\n", "  system: live\n  candidates: {max: 2}\n")
    return tmp_path


def try_candidate(root: Path, runs: str) -> tuple[int | None, int]:
    swap(root, runs)
    verdict = gate_verdict(root)
    edit(root, EXPERIMENT, f"live: {runs}", "live: {runs: [a]}")
    return verdict.candidate_number, verdict.exit_code


def test_different_candidates_are_counted_and_the_last_is_refused(root: Path) -> None:
    path = renew_baseline(root)
    assert gate_verdict(root).candidate_number is None
    assert len(CANDIDATES.read(candidates_path(path))) == 1  # the update
    assert try_candidate(root, "{runs: [b]}") == (1, 1)
    assert try_candidate(root, "{runs: [b], depth: 3}")[0] == 2
    assert try_candidate(root, "{runs: [b]}") == (1, 1)  # the same again is no new one
    swap(root, "{runs: [b], depth: 2}")
    verdict = gate_verdict(root)
    assert (verdict.exit_code, verdict.checks) == (2, ())
    assert "2 different candidates" in verdict.refusals[0]
    assert [line.system for line in CANDIDATES.read(candidates_path(path))] == ["live"] * 3


def test_an_update_starts_the_count_again(root: Path) -> None:
    renew_baseline(root)
    try_candidate(root, "{runs: [b]}")
    edit(root, EXPERIMENT, "    RR@10: {max_drop: 0.01}", "    RR@10: {max_drop: 0.011}")
    renew_baseline(root, "another tolerance")
    assert try_candidate(root, "{runs: [b], depth: 2}")[0] == 1


def test_the_earlier_name_is_the_same_policy(root: Path) -> None:
    renew_baseline(root)
    edit(root, EXPERIMENT, "candidates: {max: 2}", "always_valid: {runs: 2}")
    assert gate_verdict(root).exit_code == 0
    edit(root, EXPERIMENT, "always_valid: {runs: 2}", "always_valid: {runs: 3}")
    assert "candidates.max 2 → 3" in gate_verdict(root).refusals[0]
    edit(root, EXPERIMENT, "always_valid: {runs: 3}", "always_valid: {runs: 3, max: 3}")
    with pytest.raises(ConfigError, match="unknown key 'runs'"):
        gate_verdict(root)
    both = "always_valid: {runs: 2}\n  candidates: {max: 2}"
    edit(root, EXPERIMENT, "always_valid: {runs: 3, max: 3}", both)
    with pytest.raises(ConfigError, match="name of candidates"):
        gate_verdict(root)


def cut(path: Path, keep: int) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:keep]))


def test_a_ledger_that_was_deleted_or_cut_before_the_update_is_missed(root: Path) -> None:
    path = renew_baseline(root)
    ledger = candidates_path(path)
    try_candidate(root, "{runs: [b]}")
    edit(root, EXPERIMENT, "    RR@10: {max_drop: 0.01}", "    RR@10: {max_drop: 0.011}")
    renew_baseline(root, "another tolerance")
    baseline = read_baseline(path)
    assert baseline is not None
    assert baseline.ledger is not None
    assert baseline.ledger.line == 3
    swap(root, "{runs: [b], depth: 2}")
    verdict = gate_verdict(root)
    assert verdict.candidate_line is not None
    assert verdict.candidate_line.line == 4
    assert names_in_order(format_text(verdict), "candidate 1 of", "most 2", "(line 4")
    for keep in (2, 0):
        cut(ledger, keep)
        with pytest.raises(DataError, match=r"line 3, .*missing"):
            gate_verdict(root)
    ledger.unlink()
    with pytest.raises(DataError, match=r"line 3, .*missing"):
        gate_verdict(root)


def test_a_cut_since_the_commit_of_the_base_is_missed(root: Path) -> None:
    path = renew_baseline(root)
    for runs in ("{runs: [b]}", "{runs: [b], depth: 3}"):
        try_candidate(root, runs)
    commit_all(root)
    cut(candidates_path(path), 1)
    swap(root, "{runs: [b], depth: 2}")
    assert gate_verdict(root).candidate_number == 1  # nothing in the file tells
    cut(candidates_path(path), 1)
    with pytest.raises(DataError, match=r"line 2, .*missing"):
        run_gate(gate_inputs(root), path, "main")


def test_lines_of_an_earlier_version_are_counted(root: Path) -> None:
    path = renew_baseline(root)
    baseline = read_baseline(path)
    assert baseline is not None
    ledger = candidates_path(path)
    old = {"baseline": "1", "candidate": "2", "system": "live", "checked_at": "2026"}
    ledger.write_text(f"{json.dumps(old)}\n")
    write_baseline(baseline.model_copy(update={"ledger": None}), path)
    assert try_candidate(root, "{runs: [b]}") == (1, 1)
    assert [line.line for line in CANDIDATES.read(ledger)] == [None, 2]
    ledger.write_text(ledger.read_text().replace("2026", "2027", 1))
    with pytest.raises(DataError, match=r":2: .*removed or edited"):
        try_candidate(root, "{runs: [b], depth: 2}")
