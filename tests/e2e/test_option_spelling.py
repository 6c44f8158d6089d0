"""How the values of options are spelled."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests import tiny


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["schema", "--out", ""], "an empty name"),
        (["pull", "python", "--queries", "q.jsonl", "--out", ""], "an empty name"),
        (["eval", tiny.EXPERIMENT, "--datasets", ""], "an empty name"),
        (["eval", "experiments/e\udcff.yaml"], "not UTF-8 text; a file"),
        (["compare", "--qrels", "q.txt", "a=a\udcff.trec"], "not UTF-8 text; a file"),
    ],
)
def test_what_names_no_file_is_refused(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tiny.make(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    assert main(words) == 2
    assert message in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before
