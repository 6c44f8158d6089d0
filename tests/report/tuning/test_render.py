"""The page, the terminal and the folder of a tuning run."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from fusion_bench.errors import FusionBenchError
from fusion_bench.report.tuning import read_tuning
from fusion_bench.report.tuning.findings import sentences
from fusion_bench.report.tuning.markdown import Picture, render
from fusion_bench.report.tuning.terminal import render as show
from fusion_bench.report.tuning.write import write
from tests.report.tuning.cases import front, record, typed

HOSTILE = "[red]x[/red]|<b>"


def test_the_page_says_everything_first() -> None:
    page = render(record(interrupted=True), [Picture("a.png", "A picture", "It means this.")])
    lines = page.splitlines()
    assert lines[0] == "# mine: tuning today"
    assert lines[2].startswith("- Ship: ")
    assert "> [!WARNING]" in lines
    at = lines.index("![A picture](a.png)")
    assert lines[at - 2] == "It means this."
    assert "split seed 's'" in page


def test_the_systems_stand_in_the_page_in_full() -> None:
    page = render(record(default={"fusion": {"k": 61}}))
    assert "fusion:\n  k: 61" in page


def test_names_stay_names() -> None:
    page = render(record(system=HOSTILE, dataset=HOSTILE))
    assert "<b>" not in page
    assert r"\[red\]" in page


def test_the_terminal_says_the_same() -> None:
    out = io.StringIO()
    whole = record(by_type=typed(), front=front(), system=HOSTILE)
    show(whole, Console(file=out, width=200))
    text = out.getvalue()
    for sentence in sentences(whole):
        assert sentence.text in text
    assert HOSTILE in text
    assert "Quality against effort" in text


def test_the_folder_is_whole(tmp_path: Path) -> None:
    written = write(record(), tmp_path / "new", tuned="dataset: x\n", plots=False)
    assert [path.name for path in written] == ["tuning.json", "tuning.md", "tuned.yaml"]
    assert read_tuning(written[0]) == record()
    assert written[2].read_text(encoding="utf-8") == "dataset: x\n"
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == sorted(p.name for p in written)


def test_the_efficient_systems_are_an_experiment_too(tmp_path: Path) -> None:
    tuned = "dataset: x\nbaseline: today\nsystems: {today: {k: 1}, today tuned: {k: 2}}\n"
    written = write(record(front=front()), tmp_path, tuned=tuned, plots=False)
    data = yaml.safe_load({path.name: path for path in written}["front.yaml"].read_text())
    assert data["dataset"] == "x"
    names = [f"today, {what}" for what in ("no reranker", "depth 10", "depth 60")]
    assert list(data["systems"]) == ["today", *names]
    assert data["systems"]["today, depth 10"] == {"runs": ["dense"]}


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(FusionBenchError, match="the tuning cannot be written"):
        write(record(), tmp_path / "file", tuned="", plots=False)
