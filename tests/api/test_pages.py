"""The pages of docs on Python run, and every function says what it does."""

import doctest
import json
import re
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import ir_measures
import nbformat
import pandas as pd
import pytest
from nbclient import NotebookClient

import fusion_bench as fb
from tests import tiny
from tests.api.cases import BM25, DENSE, QRELS, make_collection
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
    names: dict[str, Any] = {"__name__": "__main__"}
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    for number, block in enumerate(blocks):
        if "import ranx" not in block:  # it compiles for a minute
            code = block.replace("trials=200", "trials=4, folds=0")  # as many take their time
            cell = Path(f"cell{number}.py")  # a function has a source
            cell.write_text(code, encoding="utf-8")
            exec(compile(code, str(cell), "exec"), names)  # noqa: S102 - our own page
    assert len(blocks) >= 6
    assert names["tuned"].verdict == "too few tuning queries"
    assert fb.load_run("fused.trec").to_dict().keys() == names["fused"].to_dict().keys()
    assert names["verdict"].exit_code == 0
    assert not [each for each in names["own"].warnings if "not replayable" in each]
    assert "share_relevant@5" in names["own"].to_dict()["systems"]["mine"]


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


MODULES = (
    "api.compare",
    "api.fuse",
    "data.qrels",
    "data.run",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    result = doctest.testmod(import_module(f"fusion_bench.{name}"))
    assert result.attempted > 0
    assert result.failed == 0


FRAME = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "score": [0.5]})


class RanxRun:
    name = "bm25"

    def to_dict(self) -> dict[str, dict[str, float]]:
        return BM25


def system() -> fb.System:
    return fb.System("rrf", ["bm25", "dense"])


def aligned() -> fb.AlignedRuns:
    return fb.align_runs(QRELS, {"bm25": BM25, "dense": DENSE})


WORKS: dict[str, Callable[[], Any]] = {
    "Run.from_dict(d)": lambda: fb.Run.from_dict(BM25),
    "Run.from_pandas(df)": lambda: fb.Run.from_pandas(FRAME),
    "Run(df, name=…)": lambda: fb.Run(FRAME, name="mine"),  # type: ignore[call-arg, arg-type, misc]
    "Run.from_df(df)": lambda: fb.Run.from_df(FRAME),
    "Run.from_dataframe(df)": lambda: fb.Run.from_dataframe(FRAME),
    "Run.from_dict(df)": lambda: fb.Run.from_dict(FRAME),
    "Run.from_dict(name, df)": lambda: fb.Run.from_dict("bm25", FRAME),
    "align_runs(dict, [dict, dict])": lambda: fb.align_runs(QRELS, [BM25, DENSE]),
    "System(name, [...])": system,
    "evaluate_systems(system, runs, text)": lambda: fb.evaluate_systems(
        system(), aligned(), "nDCG@10"
    ),
    "evaluate_systems(…, [text])": lambda: fb.evaluate_systems([system()], aligned(), ["nDCG@10"]),
    "evaluate_systems(…, [ir_measures])": lambda: fb.evaluate_systems(
        system(), aligned(), [ir_measures.nDCG @ 10]
    ),
    "parse_measure(ir_measures)": lambda: fb.parse_measure(ir_measures.nDCG @ 10),
    "load_run(text)": lambda: fb.load_run("datasets/tiny/a.trec"),
    "load_qrels(text)": lambda: fb.load_qrels("datasets/tiny/qrels.txt"),
    "load_dataset(text)": lambda: fb.load_dataset("datasets/tiny/dataset.yaml"),
    "load_dataset(name)": lambda: fb.load_dataset("tiny"),
    "read_experiment(text)": lambda: fb.read_experiment("experiments/e.yaml"),
    "run_experiment(text)": lambda: fb.run_experiment("experiments/e.yaml"),
    "run_experiment(*read_experiment(path))": lambda: fb.run_experiment(
        *fb.read_experiment(Path("experiments/e.yaml"))
    ),
    "Run.from_dict(name, ranx)": lambda: fb.Run.from_dict("x", RanxRun()),
    "Qrels of whole numbers": lambda: fb.Qrels.from_dict({1: {2: 1}}),
    "a list of pairs": lambda: fb.Run.from_dict({"q1": [("d1", 2.0)]}),
    "a list of ids": lambda: fb.Run.from_dict({"q1": ["d1", "d2"]}),
    "System(fusion=text)": lambda: fb.System(name="a", runs=["a"], fusion="rrf"),
    "System(fusion=dict)": lambda: fb.System("a", ["a"], fusion={"method": "rrf", "k": 10}),
}

ANSWERS: dict[str, tuple[Callable[[], Any], str]] = {
    "fb.evaluate": (lambda: fb.evaluate, r"compare\(qrels, runs\)"),  # type: ignore[attr-defined]
    "fb.methods": (lambda: fb.methods, "fusion-bench methods"),
    "1 and '1'": (
        lambda: fb.Run.from_dict({"q1": {1: 1.0, "1": 2.0}}),
        "given both as a number and as text",
    ),
    "load_dataset(unknown)": (lambda: fb.load_dataset("tin"), "did you mean 'tiny'"),
    "System(…, method=)": (
        lambda: fb.System("a", ["a"], fusion={"method": "rff"}),
        "did you mean 'rrf'",
    ),
    "System(name)": (lambda: fb.System("a"), "^a.runs: is required$"),  # type: ignore[call-arg]
    "System(top_k=0)": (lambda: fb.System("a", ["a"], top_k=0), "^a.top_k: .*given 0$"),
}


def test_the_repr_of_a_system_builds_it_again() -> None:
    blend = {"method": "linear", "reranker": "r", "beta": 0.4}
    system = fb.System("x", ["a", "b"], {"method": "rrf", "k": 10}, blend, top_k=5)
    assert eval(repr(system), {"System": fb.System}) == system  # noqa: S307 - our own text


@pytest.fixture(autouse=True)
def _in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny.make(tmp_path))


@pytest.mark.parametrize("attempt", WORKS)
def test_it_works_and_shows_itself_in_three_lines(attempt: str) -> None:
    result = WORKS[attempt]()
    assert result is not None
    for thing in result if isinstance(result, tuple) else (result,):
        assert len(repr(thing)) < 500
        assert len(repr(thing).splitlines()) <= 3
        if hasattr(thing, "_repr_html_"):
            assert len(thing._repr_html_()) < 20_000


@pytest.mark.parametrize("attempt", ANSWERS)
def test_the_answer_says_what_to_do(attempt: str) -> None:
    call, hint = ANSWERS[attempt]
    with pytest.raises((AttributeError, ValueError, fb.FusionBenchError), match=hint):
        call()
