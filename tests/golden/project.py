"""The project of the golden pages: 60 queries, two lists, a reranker, a judge, a worse system."""

import json
from pathlib import Path

from tests.gate import cases
from tests.gate.cases import EXPERIMENT, QUERIES
from tests.tiny import write_files

SYSTEMS = """\
dataset: mine
measures: [RR@10, nDCG@10]
baseline: plain
systems:
  plain: {runs: [a, b]}
  live: {runs: [a]}
  blended:
    runs: [a, b]
    fusion: {method: rrf_v2}
    blend: {method: position_aware, reranker: r, missing: below}
tune: {system: blended, measure: RR@10, trials: 6, folds: 2}
gate:
  checks:
    RR@10: {max_drop: 0.01}
    nDCG@10: {max_drop: 0.01}
  system: live
  slices: [local]
"""
DATASET = """\
name: mine
qrels: qrels.txt
queries: queries.jsonl
groups: none
documents: documents.jsonl
judges:
  people: {path: people.csv, kind: human, sample: random}
  llm: {path: llm.csv, kind: machine}
runs:
  a: {path: a.trec, roles: [keyword]}
  b: {path: b.trec, roles: [question, semantic]}
rerank:
  r: {path: r.trec, score_space: unit}
"""
HEADER = "query,document,grade"
DOCUMENTS = [f"d{q}" for q in range(QUERIES)] + [f"n{i}" for i in range(4)]


def make_project(root: Path) -> Path:
    cases.make_project(root, mine=SYSTEMS, dataset=DATASET)
    pairs = [(q, d) for q in range(QUERIES) for d in (f"d{q}", "n1")]
    grades = [f"q{q},{d},{int(d[0] == 'd')}" for q, d in pairs if q % 3 == 0]
    machine = [f"q{q},{d},{int(d[0] == 'd' or q % 8 == 0)}" for q, d in pairs]
    rows = [{"id": name, "text": f"The text about {name}."} for name in DOCUMENTS]
    queries = [
        {"id": f"q{q}", "text": f"what is d{q}?", "type": ("global", "local")[q % 2]}
        for q in range(QUERIES)
    ]
    files = {
        "datasets/mine/people.csv": "\n".join([HEADER, *grades]) + "\n",
        "datasets/mine/llm.csv": "\n".join([HEADER, *machine]) + "\n",
        "datasets/mine/documents.jsonl": "".join(f"{json.dumps(row)}\n" for row in rows),
        "datasets/mine/queries.jsonl": "".join(f"{json.dumps(row)}\n" for row in queries),
        "searches.txt": "".join(f"how to open d{q % 7}\n" for q in range(20)),
    }
    return write_files(root, files)


def worsen(root: Path) -> None:
    path = root / EXPERIMENT
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("live: {runs: [a]}", "live: {runs: [b]}"), encoding="utf-8")
