"""A small collection with texts and judgments, and no run yet."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DOCUMENTS = {
    "d1": "the storm moves every ship one sea away",
    "d2": "a ship in harbor draws two cards",
    "d3": "the lighthouse keeper ignores the storm",
    "d4": "cards are drawn at dusk",
    "d5": "the game ends when the last lantern is lit",
}
QUERIES = {
    "q1": "what does a storm do",
    "q2": "cards in harbor",
    "q3": "when does it end",
    "q4": "zzz",
}
PASSAGES = {
    "q1": "a storm moves each ship away",
    "q2": "a ship in harbor draws cards",
    "q3": "the game ends with the last lantern",
    "q4": "the lighthouse keeper decides",
}
YAML = """\
# the owner's comment
name: sea
qrels: qrels.txt
queries: queries.jsonl
documents: documents.jsonl
"""


def make(root: Path) -> Path:
    """Write the collection below ``root``; returns its ``dataset.yaml``. Query q4 is not judged."""
    folder = root / "datasets/sea"
    write_lines(folder / "documents.jsonl", as_rows(DOCUMENTS))
    splits = {"q1": "dev", "q2": "test", "q3": "test"}
    rows = (
        {"id": q, "text": text, "split": splits.get(q), "hyde": PASSAGES[q]}
        for q, text in QUERIES.items()
    )
    write_lines(folder / "queries.jsonl", rows)
    (folder / "qrels.txt").write_text("q1 0 d1 1\nq2 0 d2 2\nq3 0 d5 1\n", encoding="utf-8")
    (folder / "dataset.yaml").write_text(YAML, encoding="utf-8")
    return folder / "dataset.yaml"


def as_rows(texts: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    return ({"id": name, "text": text} for name, text in texts.items())


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    return path
