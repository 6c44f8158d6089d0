"""Several candidates share the level, and are counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError, DataError
from fusion_bench.gate.baselines.candidates import candidates_path, read_candidates
from tests.gate import cases
from tests.gate.cases import EXPERIMENT, gate_verdict, renew_baseline
from tests.gate.test_run import swap
from tests.tiny import edit


@pytest.fixture
def root(tmp_path: Path) -> Path:
    cases.make_project(tmp_path)
    edit(tmp_path, EXPERIMENT, "  system: live\n", "  system: live\n  candidates: {max: 2}\n")
    return tmp_path


def try_candidate(root: Path, runs: str) -> tuple[int | None, int]:
    """Its number and the exit code."""
    swap(root, runs)
    verdict = gate_verdict(root)
    edit(root, EXPERIMENT, f"live: {runs}", "live: {runs: [a]}")
    return verdict.candidate_number, verdict.exit_code


def test_different_candidates_are_counted_and_the_last_is_refused(root: Path) -> None:
    path = renew_baseline(root)
    assert gate_verdict(root).candidate_number is None
    assert not candidates_path(path).exists()
    assert try_candidate(root, "{runs: [b]}") == (1, 1)
    assert try_candidate(root, "{runs: [b], depth: 3}")[0] == 2
    assert try_candidate(root, "{runs: [b]}") == (1, 1)  # the same again is no new one
    swap(root, "{runs: [b], depth: 2}")
    verdict = gate_verdict(root)
    assert (verdict.exit_code, verdict.checks) == (2, ())
    assert "2 different candidates were checked since the last update" in verdict.refusals[0]
    assert [line.system for line in read_candidates(candidates_path(path))] == ["live"] * 2


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
    with pytest.raises(ConfigError, match="an earlier name of candidates"):
        gate_verdict(root)


def test_a_broken_file_is_an_error(root: Path) -> None:
    path = candidates_path(renew_baseline(root))
    path.write_text("no json\n")
    with pytest.raises(DataError, match=r"mine\.candidates\.jsonl: not a list of checked"):
        try_candidate(root, "{runs: [b]}")
