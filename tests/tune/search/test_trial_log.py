from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.config.parameters import Params
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.tune.search.trial_log import Trial, TrialLog
from fusion_bench.tune.space.objective import TuningObjective
from tests.tune.cases import aligned
from tests.tune.problems import problem

RUNS = aligned(12)
OBJECTIVE = problem(ranges={"fusion.weights": "own"}, runs=RUNS)
GOOD, BAD = "fusion.weights.good", "fusion.weights.bad"
FIRST: Params = {GOOD: 1.0, BAD: 0.1 + 0.2}
SECOND: Params = {GOOD: 0.0, BAD: 0.0}  # cannot be computed


def write(path: Path, *batch: Params) -> list[Trial]:
    return TrialLog(path, "same").evaluate_params(OBJECTIVE, batch, "sampler")


def refuse(*_: object) -> None:
    raise AssertionError("evaluated again")


def test_what_was_written_is_found_again_to_the_last_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = write(tmp_path / "new" / "trials.jsonl", FIRST, SECOND)
    monkeypatch.setattr(TuningObjective, "evaluate_params", refuse)
    swapped = {BAD: FIRST[BAD], GOOD: FIRST[GOOD]}
    again, failed = write(tmp_path / "new" / "trials.jsonl", swapped, SECOND)
    assert (again.number, again.value) == (0, first.value)
    assert second.is_failed
    assert failed.is_failed


def test_a_finished_trial_is_written_once(tmp_path: Path) -> None:
    log = TrialLog(tmp_path / "t", "same")
    log.evaluate_params(OBJECTIVE, [FIRST], "sampler")
    log.evaluate_params(OBJECTIVE, [FIRST, SECOND], "sampler")
    assert len((tmp_path / "t").read_text().splitlines()) == 3  # the head, and two trials
    assert [trial.number for trial in log.trials] == [0, 1, 2]


@pytest.mark.parametrize("cut", [1, 20])
def test_a_line_cut_short_is_cut_off(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "t"
    write(path, FIRST, SECOND)
    path.write_bytes(path.read_bytes()[:-cut])
    assert len(TrialLog(path, "same")) == 1
    write(path, SECOND)
    assert len(TrialLog(path, "same")) == 2


def test_killed_before_the_first_line_was_whole(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b'{"versi')
    write(path, FIRST)
    assert len(TrialLog(path, "same")) == 1


def test_without_a_file_trials_are_kept_in_memory() -> None:
    log = TrialLog(None, "")
    (first,) = log.evaluate_params(OBJECTIVE, [FIRST], "default")
    assert log.evaluate_params(OBJECTIVE, [FIRST], "sampler")[0].value == first.value


def test_a_log_of_another_search_is_refused(tmp_path: Path) -> None:
    TrialLog(tmp_path / "t", "one")
    with pytest.raises(ConfigError, match="belongs to another search"):
        TrialLog(tmp_path / "t", "two")


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"value": 1}', '{"params": {}, "value": "x"}'])
def test_a_line_that_is_no_trial_is_an_error_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "t"
    write(path, FIRST)
    path.write_text(f"{path.read_text()}{line}\n")
    with pytest.raises(DataError, match=r"t:3: not a line"):
        TrialLog(path, "same")
