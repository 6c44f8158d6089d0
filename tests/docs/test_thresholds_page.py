"""The lines of docs/thresholds.md that use a threshold."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

import fusion_bench as fb
from fusion_bench.cli import main
from tests.threshold_project import make_project

PAGE = Path(__file__).parents[2] / "docs" / "thresholds.md"


def section(title: str) -> str:
    text = PAGE.read_text(encoding="utf-8").partition(f"## {title}\n")[2]
    return text.partition("\n## ")[0]


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)


def test_the_lines_that_use_a_threshold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(make_project(tmp_path))
    text = section("Use the threshold")
    save, evaluate = (
        shlex.split(block.removeprefix("$ fusion-bench")) for block in blocks(text, "console")
    )
    assert main(save) == 0
    saved = yaml.safe_load(Path("experiments/careful.yaml").read_text("utf-8"))
    abstain = saved["systems"]["reranked"]["abstain"]
    [shown] = [yaml.safe_load(block)["abstain"] for block in blocks(text, "yaml")]
    assert [*shown] == [*abstain]
    assert (shown["signal"], shown["promised_false_answers"]) == ("rerank top", 0.1)
    assert main([*evaluate, "--allow-suspect"]) == 0
    printed = capsys.readouterr().out
    assert "answered" in printed
    assert "false answers" in printed
    documents = {"d1": 3.0, "d2": 2.0}
    [code] = blocks(text, "python")
    for score, expected in ((9.0, True), (1.0, False)):
        names: dict[str, Any] = {
            "fb": fb,
            "lists": {"a": documents, "b": documents, "rr": dict.fromkeys(documents, score)},
        }
        exec(code, names)  # noqa: S102 - of the page
        assert names["result"].answered is expected
        assert len(names["result"].documents) == 2
        assert capsys.readouterr().out == f"{expected} rerank top {score}\n"
