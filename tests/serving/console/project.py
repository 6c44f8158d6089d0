"""A project for the console: two lists that win on different queries, made so that k matters."""

from pathlib import Path

from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.serving.console.experiment_files import open_session
from fusion_bench.serving.console.session import ConsoleSession

DATASET = """\
name: made
qrels: qrels.txt
queries: queries.jsonl
documents: corpus.jsonl
runs:
  a: {path: a.trec, roles: [keyword]}
  b: {path: b.trec, roles: [question, semantic]}
rerank:
  r: {path: r.trec, score_space: unit}
"""
EXPERIMENT = """\
dataset: made
measures: [RR@10, nDCG@10]
baseline: plain
systems:
  plain:
    runs: [a, b]
  boosted:
    runs: [a, b]
    fusion: {method: rrf_v2, k: 60, weights: {question: 2}, bonus: {1: 0.05, 3: 0.02}}
    blend: {method: linear, reranker: r, beta: 0.5, depth: 5}
tune: {system: boosted, trials: 20}
"""
#: Queries of each split; the relevant document of query n is d0.
DEV, TEST = 30, 30


def make_project(folder: Path) -> Path:
    data = folder / "datasets" / "made"
    data.mkdir(parents=True)
    qrels: list[str] = []
    queries: list[str] = []
    lists: dict[str, list[str]] = {"a": [], "b": [], "r": []}
    for n in range(DEV + TEST):
        name = f"q{n:02}"
        split = "dev" if n < DEV else "test"
        queries.append(f'{{"id": "{name}", "text": "question {n}", "split": "{split}"}}')
        qrels += [f"{name} 0 d0 1", f"{name} 0 d1 0"]
        # b has the relevant document first on two queries of three, a on the others.
        orders = (["d1", "d2", "d0"], ["d0", "d3", "d1"]) if n % 3 else (["d0", "d1"], ["d2", "d1"])
        for source, order in zip(("a", "b"), orders, strict=True):
            lists[source] += [f"{name} Q0 {d} {i} {9 - i} x" for i, d in enumerate(order, 1)]
        ranked = ["d0", "d1", "d2", "d3"] if n % 2 else ["d1", "d0", "d2", "d3"]
        lists["r"] += [f"{name} Q0 {d} {i} {1 - i / 10} x" for i, d in enumerate(ranked, 1)]
    corpus = [f'{{"id": "d{i}", "title": "title {i}", "text": "text"}}' for i in range(4)]
    contents = {"qrels.txt": qrels, "queries.jsonl": queries, "corpus.jsonl": corpus}
    contents |= {f"{source}.trec": lines for source, lines in lists.items()}
    for name, lines in contents.items():
        (data / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (data / "dataset.yaml").write_text(DATASET, encoding="utf-8")
    experiment = folder / "experiments" / "e.yaml"
    experiment.parent.mkdir()
    experiment.write_text(EXPERIMENT, encoding="utf-8")
    return experiment


def open_project(folder: Path, *overrides: str, system: str | None = None) -> ConsoleSession:
    parsed, source = read_experiment(folder / "experiments" / "e.yaml", overrides=overrides)
    return open_session(parsed, source, folders=[folder / "datasets"], system=system)
