"""A published collection of three documents in the forms of BEIR and of MTEB."""

import json
from pathlib import Path

import pandas as pd

DOCUMENTS = [
    {"_id": "d1", "title": "Storm", "text": "The gale moves ships."},
    {"_id": "d2", "title": "", "text": "A calm sea."},
    {"_id": "d3", "title": "Ship", "text": "It sails."},
]
QUERIES = [
    {"_id": "q1", "text": "storm"},
    {"_id": "q2", "text": "calm"},
    {"_id": "q3", "text": "unjudged"},
]
QRELS = {"dev": [("q2", "d2", 1)], "test": [("q1", "d1", 2), ("q1", "d3", 0)]}
CARD = """\
---
license: cc-by-sa-4.0
dataset_info:
- config_name: corpus
  splits:
  - {name: corpus, num_examples: 3}
- config_name: default
  splits:
  - {name: dev, num_examples: 1}
  - {name: test, num_examples: 2}
---
# Tiny
"""


def json_lines(rows: list[dict[str, str]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def make_beir(folder: Path) -> Path:
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(json_lines(DOCUMENTS))
    (folder / "queries.jsonl").write_text(json_lines(QUERIES))
    for split, rows in QRELS.items():
        lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in rows)]
        (folder / f"qrels/{split}.tsv").write_text("\n".join(lines) + "\n")
    return folder


def make_mteb(folder: Path) -> Path:
    """The Parquet files of MTEB, the corpus in two parts, with a card."""
    for name in ("corpus", "queries", "default"):
        (folder / name).mkdir(parents=True)
    (folder / "README.md").write_text(CARD)
    for number, rows in enumerate((DOCUMENTS[:2], DOCUMENTS[2:])):
        path = folder / f"corpus/corpus-0000{number}-of-00002.parquet"
        pd.DataFrame(rows).to_parquet(path)
    pd.DataFrame(QUERIES).to_parquet(folder / "queries/queries-00000-of-00001.parquet")
    for split, judged in QRELS.items():
        frame = pd.DataFrame(judged, columns=["query-id", "corpus-id", "score"])
        frame.to_parquet(folder / f"default/{split}-00000-of-00001.parquet")
    return folder
