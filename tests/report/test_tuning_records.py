"""The record of a tuning run: versioned, strict, and the same after a way through JSON."""

import json
from pathlib import Path

import pytest

from fusion_bench.config.json_records import read_stored
from fusion_bench.errors import DataError
from fusion_bench.report.tuning_records import TuningReport
from tests.report.tuning_cases import front, gain, record, typed


def read(path: Path) -> TuningReport:
    return read_stored(path, TuningReport, what="tuning run", remedy="tune it again")


def test_a_record_is_the_same_after_json(tmp_path: Path) -> None:
    path = tmp_path / "tuning.json"
    whole = record(by_type=typed(), front=front(), interrupted=True)
    path.write_text(whole.model_dump_json(), encoding="utf-8")
    assert read(path) == whole


def test_optimism_and_trials_that_are_not_done() -> None:
    assert record().optimism == pytest.approx(0.25)
    assert record(tune=gain(0.0, 0.0, 0.0)).optimism is None
    whole = record()
    assert len(whole.trials) - len(whole.completed_trials) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file"),
        ("{", "not a JSON tuning run"),
        ("[]", "not a tuning run"),
        ('{"format": "fusion-bench-report"}', "not a tuning run"),
        ('{"format": "fusion-bench-tuning", "format_version": 99}', "tuning run format 99"),
        ('{"format": "fusion-bench-tuning", "format_version": 13}', "name: is required"),
        (json.dumps(json.loads(record().model_dump_json()) | {"luck": 1}), "luck"),
    ],
)
def test_what_is_no_record_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "tuning.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read(path)
