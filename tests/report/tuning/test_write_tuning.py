"""The folder of a tuning run."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from fusion_bench.config.json_records import read_stored
from fusion_bench.errors import FusionBenchError
from fusion_bench.io.outputs import RECORD
from fusion_bench.report.tuning_records import TuningReport
from fusion_bench.report.write import write_tuning
from fusion_bench.util.formatting import format_number
from tests.report.html.pages import parse_page
from tests.report.tuning.cases import front, record


def test_the_folder_is_whole(tmp_path: Path) -> None:
    written = write_tuning(record(), tmp_path / "new", tuned="dataset: x\n", plots=False)
    expected = ["tuning.json", "tuning.md", "tuning.html", "tuned.yaml"]
    assert [path.name for path in written] == expected
    assert (
        read_stored(written[0], TuningReport, what="tuning run", remedy="run the tuning again")
        == record()
    )
    assert written[3].read_text(encoding="utf-8") == "dataset: x\n"
    names = {path.name for path in written} | {".gitignore"}
    assert {path.name for path in (tmp_path / "new").iterdir()} == {*names, RECORD}


def test_the_page_holds_the_verdict_and_the_figures(tmp_path: Path) -> None:
    report = record()
    written = write_tuning(report, tmp_path, tuned="")
    pictures = [path for path in written if path.suffix == ".png"]
    page = parse_page((tmp_path / "tuning.html").read_text(encoding="utf-8"))
    sources = [attributes["src"] for tag, attributes in page.tags if tag == "img"]
    encoded = [base64.b64encode(path.read_bytes()).decode() for path in pictures]
    assert sources == [f"data:image/png;base64,{text}" for text in encoded]
    assert pictures
    assert f"{format_number(report.held_out.difference, signed=True)} held out" in page.text
    before = {path.name for path in written} - {"tuning.html"}
    again = write_tuning(report, tmp_path / "other", tuned="", html=False, plots=False)
    assert {path.name for path in again} < before


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
