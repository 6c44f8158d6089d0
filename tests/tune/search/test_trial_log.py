from __future__ import annotations

import re
from pathlib import Path

import pytest

from fusion_bench.config.parameters import Params
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.io.fingerprints import Fingerprint
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import Trial, TrialLog
from fusion_bench.util.digests import add_line_digest
from tests.tune.cases import aligned
from tests.tune.problems import problem

RUNS = aligned(12)
OBJECTIVE = problem(ranges={"fusion.weights": "own"}, runs=RUNS)
SAME = Fingerprint({"seed": "7"})
GOOD, BAD = "fusion.weights.good", "fusion.weights.bad"
FIRST: Params = {GOOD: 1.0, BAD: 0.1 + 0.2}
SECOND: Params = {GOOD: 0.0, BAD: 0.0}  # cannot be computed


def write(path: Path, *batch: Params) -> list[Trial]:
    return TrialLog(path, SAME).evaluate_params(OBJECTIVE, batch, "sampler")


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
    log = TrialLog(tmp_path / "t", SAME)
    log.evaluate_params(OBJECTIVE, [FIRST], "sampler")
    log.evaluate_params(OBJECTIVE, [FIRST, SECOND], "sampler")
    assert len((tmp_path / "t").read_text().splitlines()) == 3  # the head, and two trials
    assert [trial.number for trial in log.trials] == [0, 1, 2]


@pytest.mark.parametrize("cut", [1, 20])
def test_a_line_cut_short_is_cut_off(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "t"
    write(path, FIRST, SECOND)
    path.write_bytes(path.read_bytes()[:-cut])
    assert len(TrialLog(path, SAME)) == 1
    write(path, SECOND)
    assert len(TrialLog(path, SAME)) == 2


def test_killed_before_the_first_line_was_whole(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b'{"versi')
    write(path, FIRST)
    assert len(TrialLog(path, SAME)) == 1


def test_without_a_file_trials_are_kept_in_memory() -> None:
    log = TrialLog()
    (first,) = log.evaluate_params(OBJECTIVE, [FIRST], "default")
    assert log.evaluate_params(OBJECTIVE, [FIRST], "sampler")[0].value == first.value


def test_a_log_of_another_search_is_refused(tmp_path: Path) -> None:
    TrialLog(tmp_path / "t", SAME)
    with pytest.raises(ConfigError, match=r"search \(seed: 8, was 7\)"):
        TrialLog(tmp_path / "t", Fingerprint({"seed": "8"}))


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"value":1}', "[" * 100_000, ""])
def test_a_line_without_its_digest_is_an_error_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "t"
    write(path, FIRST)
    path.write_text(f"{path.read_text()}{line}\n")
    with pytest.raises(DataError, match=r"t:3: .*digest"):
        TrialLog(path, SAME)


@pytest.mark.parametrize(
    "value", ["5", "-1", "NaN", "Infinity", "-Infinity", "true", '"0.5"', "[]", "1" + "0" * 400]
)
def test_a_value_that_the_measure_cannot_have_is_refused_whatever_its_digest(
    tmp_path: Path, value: str
) -> None:
    path = tmp_path / "t"
    write(path, FIRST)
    text = f'{{"number":1,"origin":"sampler","value":{value},"params":{{}}}}'
    path.write_text(f"{path.read_text()}{add_line_digest(text, SAME.digest)}\n")
    with pytest.raises(DataError, match=r"t:3: value .* lie in \[0, 1\]"):
        TrialLog(path, SAME, (0.0, 1.0))


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_edited_line_is_refused_with_its_number(tmp_path: Path, number: int) -> None:
    path = tmp_path / "t"
    write(path, FIRST, SECOND)
    lines = path.read_text().splitlines(keepends=True)
    lines[number] = re.sub(r"(?<=[:,])\d", "9", lines[number], count=1)
    path.write_text("".join(lines))
    with pytest.raises(DataError, match=rf"t:{number + 1}: .*digest"):
        TrialLog(path, SAME)


def test_a_line_of_another_log_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "t", FIRST)
    TrialLog(tmp_path / "u", Fingerprint({"seed": "8"})).evaluate_params(
        OBJECTIVE, [SECOND], "sampler"
    )
    line = (tmp_path / "u").read_text().splitlines()[1]
    with (tmp_path / "t").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(DataError, match=r"t:3: .*digest"):
        TrialLog(tmp_path / "t", SAME)


def test_a_log_of_an_earlier_version_is_refused_with_the_command(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text('{"version": 1, "search": "0a"}\n')
    with pytest.raises(ConfigError, match=r"t:1: .*version .* \(rm .*t\)"):
        TrialLog(path, SAME)
