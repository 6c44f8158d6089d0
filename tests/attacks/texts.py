"""Texts of the project's queries and documents, for the commands that read them."""

import json
from pathlib import Path

from tests.attacks.project import DATASET, QUERIES
from tests.gate import cases

DOCUMENTS = "datasets/mine/documents.jsonl"


def add_texts(root: Path) -> None:
    """Give each query and each document of the project a text."""
    queries = [json.loads(line) for line in (root / QUERIES).read_text().splitlines()]
    texts = [{**query, "text": f"which {query['id']} holds term{query['id']}"} for query in queries]
    names = [*(f"d{q}" for q in range(cases.QUERIES)), *(f"n{i}" for i in range(4))]
    documents = [{"id": name, "text": f"{name} holds termq{name[1:]}"} for name in names]
    for name, items in ((QUERIES, texts), (DOCUMENTS, documents)):
        (root / name).write_text("".join(f"{json.dumps(item)}\n" for item in items))
    with (root / DATASET).open("a") as file:
        file.write(f"documents: {Path(DOCUMENTS).name}\n")
