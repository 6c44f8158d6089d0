"""Annotations of GitHub Actions: one line for whatever did not pass, at its line in the YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.cli.application.console import format_annotation
from tests.gate import cases
from tests.gate.cases import EXPERIMENT, renew_baseline
from tests.tiny import edit

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(cases.make_project(tmp_path))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    return tmp_path


def list_annotations(capsys: Capture, *options: str) -> list[tuple[str, str]]:
    """Level and properties of each annotation, and the YAML's line that it points to."""
    capsys.readouterr()
    main(["gate", EXPERIMENT, *options])
    lines = capsys.readouterr().err.splitlines()
    given = [line.removeprefix("::").split("::")[0] for line in lines if line.startswith("::")]
    levels = [text.split(" ", 1) for text in given]
    yaml = Path(EXPERIMENT).read_text().splitlines()
    found = []
    for level, properties in levels:
        values = dict(pair.split("=", 1) for pair in properties.split(","))
        assert values["file"] == EXPERIMENT
        found.append((level, yaml[int(values["line"]) - 1].strip()))
    return found


def test_each_regression_points_to_its_check(root: Path, capsys: Capture) -> None:
    renew_baseline(root)
    assert list_annotations(capsys) == []
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    checks = ("RR@10: {max_drop: 0.01}", "nDCG@10: {max_drop: 0.01}")
    assert list_annotations(capsys) == [("error", checks[i]) for i in (0, 0, 1, 1)]
    assert len(list_annotations(capsys, "--json")) == 4


def test_guards_golden_queries_and_refusals_point_to_their_keys(
    root: Path, capsys: Capture
) -> None:
    assert list_annotations(capsys) == [("error", "gate:")]
    edit(
        root,
        EXPERIMENT,
        "  slices: [local]\n",
        "  inconclusive: warn\n  slices: [absent]\n  guards:\n"
        "    - {measure: RR@10, max_loss: 0.9}\n    - {measure: RR@10, max_loss: 0.1}\n"
        "  golden:\n    - {query: q99, document: d1}\n",
    )
    renew_baseline(root)
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    found = list_annotations(capsys)
    assert ("error", "- {measure: RR@10, max_loss: 0.1}") in found
    assert ("error", "- {measure: RR@10, max_loss: 0.9}") not in found
    assert ("error", "- {query: q99, document: d1}") in found
    assert len(found) == 6  # four checks, two of them without a query


def test_an_error_points_to_its_line(root: Path, capsys: Capture) -> None:
    edit(root, EXPERIMENT, "  system: live", "  system: dead")
    assert list_annotations(capsys) == [("error", "system: dead")]


def test_elsewhere_there_is_none(
    root: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert root
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert list_annotations(capsys) == []


def test_no_text_ends_an_annotation_or_begins_another() -> None:
    assert format_annotation("error", Path("a,b:c%.yaml"), 3, "1\n::error::2\r %,:") == (
        "::error file=a%2Cb%3Ac%25.yaml,line=3,title=fusion-bench gate::1%0A::error::2%0D %25,:"
    )


def test_files_are_named_from_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    inside = format_annotation("notice", tmp_path / "x/e.yaml", None, "m")
    assert inside == "::notice file=x/e.yaml,title=fusion-bench gate::m"
    assert "file=/elsewhere.yaml" in format_annotation("notice", Path("/elsewhere.yaml"), None, "m")
