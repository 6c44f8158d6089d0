"""``fusion-bench lint``: its exit codes, its JSON and its page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests.tiny import EXPERIMENT, FILES


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),  # the blend of system two
        (["--system", "one"], 0),
        (["--system", "one", "--set", "systems.one.fusion={method: rrf, k: 1000}"], 0),  # a note
        (["--system", "three"], 2),
        (["--dataset", "tiny"], 1),
        (["--dataset", "datasets/tiny/dataset.yaml"], 1),
        (["--dataset", "other"], 2),
        (["--set", "dataset=other"], 0),  # rrf_v2 needs roles
        (["--set", "dataset=other", "--set", "systems.two.fusion=rrf"], 1),
        (["--set", "lint.ignore=[nothing]"], 2),
        (["--set", "systems.one.runs=[a, z]"], 2),
    ],
)
def test_exit_codes(options: list[str], code: int) -> None:
    assert main(["lint", EXPERIMENT, *options]) == code


@pytest.mark.usefixtures("tiny")
def test_json_holds_findings_with_their_witnesses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", EXPERIMENT, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["format"], record["format_version"]) == ("fusion-bench-lint", 1)
    assert record["datasets"] == ["tiny"]
    assert {finding["severity"] for finding in record["findings"]} == {"warning"}
    assert all(finding["witness"]["documents"] for finding in record["findings"])


@pytest.mark.usefixtures("tiny")
def test_the_page_shows_message_place_and_witness(capsys: pytest.CaptureFixture[str]) -> None:
    main(["lint", EXPERIMENT])
    page = capsys.readouterr().out
    for part in ("blend-not-monotone", "docs/lint.md#", "systems: two", "Witness: ", "e.yaml:10"):
        assert part in page


@pytest.mark.usefixtures("tiny")
def test_without_the_dataset_the_page_says_what_was_not_checked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["lint", EXPERIMENT, "--set", "dataset=other"])
    page = capsys.readouterr().out
    assert "No dataset is known" in page
    assert "their weights need roles: two" in page
