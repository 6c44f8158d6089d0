from __future__ import annotations

import math
from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError, DataError
from fusion_bench.tune.search.trial_log import Trial, TrialLog

FIRST = Trial(0, {"k": 60, "m": "a"}, 0.1 + 0.2, "default")
SECOND = Trial(1, {"k": 7, "m": "b"}, math.nan, "sampler")


def test_what_was_written_is_found_again_to_the_last_bit(tmp_path: Path) -> None:
    TrialLog(tmp_path / "new" / "trials.jsonl", "same").add_trials([FIRST, SECOND])
    found = TrialLog(tmp_path / "new" / "trials.jsonl", "same")
    assert len(found) == 2
    assert found.find_value({"m": "a", "k": 60}) == 0.1 + 0.2
    value = found.find_value(SECOND.params)
    assert value is not None
    assert math.isnan(value)
    assert found.find_value({"k": 61, "m": "a"}) is None


def test_a_finished_trial_is_written_once(tmp_path: Path) -> None:
    log = TrialLog(tmp_path / "t", "same")
    log.add_trials([FIRST])
    log.add_trials([FIRST, SECOND])
    assert len((tmp_path / "t").read_text().splitlines()) == 3  # the head, and two trials


@pytest.mark.parametrize("cut", [1, 20])
def test_a_line_cut_short_is_cut_off(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "t"
    TrialLog(path, "same").add_trials([FIRST, SECOND])
    path.write_bytes(path.read_bytes()[:-cut])
    again = TrialLog(path, "same")
    assert len(again) == 1
    again.add_trials([SECOND])
    assert len(TrialLog(path, "same")) == 2


def test_killed_before_the_first_line_was_whole(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b'{"versi')
    TrialLog(path, "same").add_trials([FIRST])
    assert len(TrialLog(path, "same")) == 1


def test_a_log_of_another_search_is_refused(tmp_path: Path) -> None:
    TrialLog(tmp_path / "t", "one")
    with pytest.raises(ConfigError, match="belongs to another search"):
        TrialLog(tmp_path / "t", "two")


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"value": 1}', '{"params": {}, "value": "x"}'])
def test_a_line_that_is_no_trial_is_an_error_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "t"
    TrialLog(path, "same").add_trials([FIRST])
    path.write_text(f"{path.read_text()}{line}\n")
    with pytest.raises(DataError, match=r"t:3: not a line"):
        TrialLog(path, "same")
