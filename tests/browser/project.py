"""A project with names that are attacks, and its evaluation, which the tests of the page share."""

import json
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fusion_bench.cli import main
from fusion_bench.evaluation.report_file import read_report
from fusion_bench.evaluation.report_records import Collection
from tests.tiny import write_files

QUERIES = 60
#: The query, document, source and system that try to become markup.
EVIL_QUERY = "<script>alert('query')</script>"
EVIL_TEXT = "</script><script>alert('text')</script>&lt;b&gt;\u2028<img src=x onerror=alert(1)>"
EVIL_DOCUMENT = "<img/src=x/onerror=alert('document')>"
EVIL_DOCUMENT_TEXT = "<svg onload=alert('excerpt')></svg>]]><!--"
EVIL_SYSTEM = "<iframe src=javascript:alert('system')></iframe>"
EVIL_INDEX = 7
DATASET = """\
name: shop
qrels: qrels.txt
queries: queries.jsonl
documents: documents.jsonl
runs:
  a: {path: a.trec, roles: [keyword]}
  b: {path: b.trec, roles: [question, semantic]}
  c: {path: c.trec, roles: [graph]}
"""
EXPERIMENT = f"""\
dataset: shop
measures: [nDCG@10, RR@10]
baseline: plain
systems:
  plain: {{runs: [a, b]}}
  only a: {{runs: [a]}}
  only b: {{runs: [b]}}
  only c: {{runs: [c]}}
  all three: {{runs: [a, b, c]}}
  heavy a: {{runs: [a, b], fusion: {{method: rrf, weights: {{a: 5}}}}}}
  heavy b: {{runs: [a, b], fusion: {{method: rrf, weights: {{b: 5}}}}}}
  a and c: {{runs: [a, c]}}
  b and c: {{runs: [b, c]}}
  tiered: {{runs: [a, b], fusion: {{method: rrf_v2}}}}
  {json.dumps(EVIL_SYSTEM)}: {{runs: [a, b], fusion: {{method: rrf, k: 5}}}}
tune: {{system: tiered, trials: 20}}
"""


@dataclass(frozen=True)
class Evaluation:
    """An evaluated project."""

    root: Path
    experiment: Path
    page: str
    collection: Collection


def query_id(query: int) -> str:
    return EVIL_QUERY if query == EVIL_INDEX else f"q{query:02}"


def document_id(query: int) -> str:
    return EVIL_DOCUMENT if query == EVIL_INDEX else f"d{query:02}"


def _qrels_text(query: int) -> str:
    """One relevant document; the others are judged, but for one of the evil query."""
    others = range(8 if query == EVIL_INDEX else 9)
    lines = [f"{query_id(query)} 0 {document_id(query)} {1 + query % 2}"]
    return "\n".join((*lines, *(f"{query_id(query)} 0 n{query}-{i} 0" for i in others), ""))


def _run_text(name: str, noise: float) -> str:
    """A run over the same ten documents a query, in an order that noise disturbs."""
    lines = []
    for query in range(QUERIES):
        random = Random(f"{name} {query}")
        documents = [document_id(query), *(f"n{query}-{i}" for i in range(9))]
        scores = {d: i + random.gauss(0, noise) for i, d in enumerate(documents)}
        for rank, document in enumerate(sorted(documents, key=scores.__getitem__), 1):
            lines.append(f"{query_id(query)} Q0 {document} {rank} {1 - rank / 20} {name}")
    return "\n".join(lines) + "\n"


def write_project(root: Path) -> Path:
    records = [
        {"id": query_id(q), "text": EVIL_TEXT if q == EVIL_INDEX else f"what is number {q}?"}
        | {"type": ("local", "global")[q % 2], "split": "dev" if q % 4 else "test"}
        for q in range(QUERIES)
    ]
    texts = {document_id(q): f"About number {q}." for q in range(QUERIES)}
    texts[EVIL_DOCUMENT] = EVIL_DOCUMENT_TEXT
    documents = [{"id": document, "text": text} for document, text in texts.items()]
    files = {
        "datasets/shop/dataset.yaml": DATASET,
        "datasets/shop/qrels.txt": "".join(map(_qrels_text, range(QUERIES))),
        "datasets/shop/queries.jsonl": "".join(f"{json.dumps(record)}\n" for record in records),
        "datasets/shop/documents.jsonl": "".join(f"{json.dumps(each)}\n" for each in documents),
        "datasets/shop/a.trec": _run_text("a", 1),
        "datasets/shop/b.trec": _run_text("b", 5),
        "datasets/shop/c.trec": _run_text("c", 8),
        "experiments/mine.yaml": EXPERIMENT,
    }
    write_files(root, files)
    return root / "experiments/mine.yaml"


def evaluate_project(root: Path) -> Evaluation:
    experiment, folder = write_project(root), root / "reports/mine"
    options = ["--split", "all", "--no-plots", "--out", str(folder)]
    assert main(["eval", str(experiment), *options]) == 0
    (collection,) = read_report(folder / "report.json").collections
    return Evaluation(root, experiment, (folder / "report.html").as_uri(), collection)
