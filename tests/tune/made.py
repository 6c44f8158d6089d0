"""A small dataset with query types and an experiment that tunes on it, as files."""

import json
from pathlib import Path

import numpy as np

DATASET = """\
name: made
qrels: qrels.txt
queries: queries.jsonl
groups: groups.jsonl
runs:
  good: {path: good.trec, roles: [question, semantic]}
  bad: {path: bad.trec, roles: [keyword]}
rerank:
  sharp: {path: sharp.trec, score_space: unit}
"""
EXPERIMENT = """\
dataset: made
measures: [nDCG@10]
baseline: today
systems:
  today:
    runs: [good, bad]
    blend: {method: linear, reranker: sharp, beta: 0.5}
tune:
  system: today
  trials: 12
  folds: 2
  sampler: random
  parameters: {fusion.weights: own, blend.beta: own}
  by_query_type: true
  crag: {top: 3}
  effort: {price: 2.0}
  front: {trials: 8}
"""
QUERIES, DEPTH = 60, 6


def make(root: Path) -> Path:
    rng = np.random.default_rng(0)
    folder = root / "datasets" / "made"
    folder.mkdir(parents=True)
    (root / "experiments").mkdir()
    (root / "experiments" / "e.yaml").write_text(EXPERIMENT, encoding="utf-8")
    (folder / "dataset.yaml").write_text(DATASET, encoding="utf-8")
    # Declared, as equal judgments of so few documents are chance.
    groups = (f'{{"id": "q{q}", "group": "q{q}"}}\n' for q in range(QUERIES))
    (folder / "groups.jsonl").write_text("".join(groups), encoding="utf-8")
    hidden = rng.random((QUERIES, DEPTH))
    relevant = hidden > 0.8
    rows = [(q, d) for q in range(QUERIES) for d in range(DEPTH)]
    lines = [f"q{q} 0 d{d} {int(relevant[q, d])}\n" for q, d in rows]
    (folder / "qrels.txt").write_text("".join(lines), encoding="utf-8")
    known = [{"id": f"q{q}", "type": "ab"[q % 2]} for q in range(QUERIES)]
    text = "".join(json.dumps(one) + "\n" for one in known)
    (folder / "queries.jsonl").write_text(text, encoding="utf-8")
    for name, noise in (("good", 0.2), ("bad", 2.0), ("sharp", 0.05)):
        scores = np.clip(hidden + noise * rng.normal(size=hidden.shape), 0.0, 1.0)
        lines = [f"q{q} Q0 d{d} 1 {scores[q, d]:.6f} x\n" for q, d in rows]
        (folder / f"{name}.trec").write_text("".join(lines), encoding="utf-8")
    return root
