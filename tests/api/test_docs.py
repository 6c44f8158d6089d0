"""The page on Python and its notebook run as they are written."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import fusion_bench as fb
from tests.api.cases import make_collection
from tests.judging.grades.judged_project import make_judged_project

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/python.md"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_the_page_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(make_judged_project(tmp_path))
    fb.gate("experiments/mine.yaml", update="first baseline")
    qrels, runs = make_collection(20)
    rows = [f"{q},{d},{g}" for q, docs in qrels.items() for d, g in docs.items()]
    Path("judged.csv").write_text("\n".join(["query,document,grade", *rows]))
    for name, lists in runs.items():
        hits = [
            json.dumps({"query": q, "document": d, "score": s})
            for q, docs in lists.items()
            for d, s in docs.items()
        ]
        Path(f"{name}.jsonl").write_text("\n".join(hits))
    names: dict[str, Any] = {}
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    for block in blocks:
        if "import ranx" not in block:  # it compiles for a minute
            code = block.replace("trials=200", "trials=4, folds=0")  # as many take their time
            exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102 - our own page
    assert len(blocks) >= 6
    assert names["tuned"].verdict == "too few tuning queries"
    assert fb.load_run("fused.trec").to_dict().keys() == names["fused"].to_dict().keys()
    assert names["verdict"].exit_code == 0


def test_the_ten_lines_are_ten() -> None:
    first = BLOCK.findall(PAGE.read_text(encoding="utf-8"))[0]
    assert len([line for line in first.splitlines() if line.strip()]) <= 10


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shutil.copytree(ROOT / "datasets/attack", tmp_path / "datasets/attack")
    notebook = nbformat.reads((ROOT / "docs/python.ipynb").read_text(), as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    assert not [out for out in outputs if out.output_type == "error"]
    assert any("image/png" in out.get("data", {}) for out in outputs)
    assert all(len(json.dumps(out)) < 500_000 for out in outputs)
