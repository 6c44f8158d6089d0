"""A dataset small enough to compute by hand, and an experiment on it.

RR of ``a`` and ``b`` by query: q1 (test) 1/2 and 1, q2 (test) 1/2 and 1/2, q3 (dev) 1 and 1/2,
q4 (test) 1/2 and 1. So ``a`` is the better source on dev and ``b`` on test.
"""

from collections.abc import Mapping
from pathlib import Path

FILES = {
    "datasets/tiny/dataset.yaml": """\
name: tiny
qrels: qrels.txt
queries: queries.jsonl
runs:
  a: {path: a.trec, roles: [keyword]}
  b: {path: b.trec, roles: [question, semantic]}
rerank:
  r: {path: r.trec, score_space: unit}
""",
    "datasets/tiny/qrels.txt": """\
q1 0 d1 1
q1 0 d2 0
q2 0 d3 2
q3 0 d1 1
q4 0 d4 1
""",
    "datasets/tiny/queries.jsonl": """\
{"id": "q1", "type": "local", "split": "test", "group": "g1"}
{"id": "q2", "type": "global", "split": "test", "group": "g1"}
{"id": "q3", "type": "relationship", "split": "dev", "group": "g2"}
{"id": "q4", "type": "local", "split": "test", "group": "g3"}
""",
    "datasets/tiny/a.trec": """\
q1 Q0 d2 1 9 a
q1 Q0 d1 2 8 a
q2 Q0 d8 1 3 a
q2 Q0 d3 2 2 a
q3 Q0 d1 1 5 a
q4 Q0 d5 1 5 a
q4 Q0 d4 2 4 a
""",
    "datasets/tiny/b.trec": """\
q1 Q0 d1 1 0.9 b
q2 Q0 d4 1 0.3 b
q2 Q0 d3 2 0.2 b
q3 Q0 d9 1 0.8 b
q3 Q0 d1 2 0.7 b
q4 Q0 d4 1 0.7 b
""",
    "datasets/tiny/r.trec": """\
q1 Q0 d1 1 0.9 r
q1 Q0 d2 2 0.1 r
q2 Q0 d3 1 0.8 r
q2 Q0 d4 2 0.3 r
q2 Q0 d8 3 0.2 r
q3 Q0 d1 1 0.6 r
q3 Q0 d9 2 0.5 r
q4 Q0 d4 1 0.7 r
q4 Q0 d5 2 0.4 r
""",
    "experiments/e.yaml": """\
dataset: tiny
measures: [RR@10, nDCG@10]
baseline: one
systems:
  one:
    runs: [a, b]
  two:
    runs: [a, b]
    fusion: {method: rrf_v2}
    blend: {method: position_aware, reranker: r}
""",
}

DATASET = "datasets/tiny/dataset.yaml"
EXPERIMENT = "experiments/e.yaml"


def make(root: Path, **changed: str) -> Path:
    return write_files(root, FILES, **changed)


def write_files(root: Path, files: Mapping[str, str], **changed: str) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(changed.get(path.stem, text), encoding="utf-8")
    return root


def edit(root: Path, name: str, old: str, new: str) -> None:
    path = root / name
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
    path.write_text(text.replace(old, new), encoding="utf-8")
