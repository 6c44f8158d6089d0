"""The folder of a tuning run."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fusion_bench.config.json_records import read_stored
from fusion_bench.errors import FusionBenchError
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.report.write import write_tuning
from tests.report.tuning.cases import front, record


def test_the_folder_is_whole(tmp_path: Path) -> None:
    written = write_tuning(record(), tmp_path / "new", tuned="dataset: x\n", plots=False)
    assert [path.name for path in written] == ["tuning.json", "tuning.md", "tuned.yaml"]
    assert (
        read_stored(written[0], TuningReport, what="tuning run", remedy="run the tuning again")
        == record()
    )
    assert written[2].read_text(encoding="utf-8") == "dataset: x\n"
    names = {path.name for path in written} | {".gitignore"}
    assert {path.name for path in (tmp_path / "new").iterdir()} == names


def test_the_efficient_systems_are_an_experiment_too(tmp_path: Path) -> None:
    tuned = "dataset: x\nbaseline: today\nsystems: {today: {k: 1}, today tuned: {k: 2}}\n"
    written = write_tuning(record(front=front()), tmp_path, tuned=tuned, plots=False)
    data = yaml.safe_load({path.name: path for path in written}["front.yaml"].read_text())
    assert data["dataset"] == "x"
    names = [f"today, {what}" for what in ("no reranker", "depth 10", "depth 60")]
    assert list(data["systems"]) == ["today", *names]
    assert data["systems"]["today, depth 10"] == {"runs": ["dense"]}


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(FusionBenchError, match="cannot be written"):
        write_tuning(record(), tmp_path / "file", tuned="", plots=False)
