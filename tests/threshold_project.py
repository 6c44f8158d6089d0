"""A project with queries that are known to have no answer."""

import json
import random
from pathlib import Path

EXPERIMENT = "experiments/mine.yaml"
YAML = """dataset: mine
measures: [nDCG@10]
baseline: plain
systems:
  plain: {runs: [a, b]}
  reranked: {runs: [a, b], blend: {method: replace, reranker: rr, depth: 20, missing: below}}
"""


def make_project(
    folder: Path,
    *,
    answerable: int = 90,
    unanswerable: int = 90,
    groups: bool = False,
    splits: bool = False,
) -> Path:
    """Lists ``a`` and ``b`` do not tell the two kinds apart, the reranker does.

    Args:
        folder: Where to.
        answerable: Queries with a relevant document.
        unanswerable: Queries that are declared to have none; half of them are not judged at all.
        groups: Whether two queries each are a group.
        splits: Whether half of each kind is in ``dev``, and half in ``test``.
    """
    draw = random.Random(11)
    dataset = folder / "datasets" / "mine"
    dataset.mkdir(parents=True)
    (folder / "experiments").mkdir()
    (folder / EXPERIMENT).write_text(YAML, encoding="utf-8")
    lists: dict[str, list[str]] = {"a": [], "b": [], "rr": []}
    qrels, queries = [], []
    for n in range(answerable + unanswerable):
        has_answer, query = n < answerable, f"q{n}"
        fields: dict[str, object] = {"id": query, "text": f"question {n}"}
        if groups:
            fields["group"] = f"g{n // 2}"
        if splits:
            fields["split"] = ("dev", "test")[n // 2 % 2]
        queries.append(fields if has_answer else {**fields, "answerable": False})
        documents = [f"d{n}_{k}" for k in range(12)]
        if has_answer:
            qrels.append(f"{query} 0 {documents[0]} 1")
        elif n % 2:
            qrels.append(f"{query} 0 {documents[0]} 0")
        for name in lists:
            best = draw.gauss(6 if name == "rr" and has_answer else 3, 1)
            scores = [best, *sorted((best - draw.random() * 9 for _ in range(11)), reverse=True)]
            ranked = [*documents[1:4], documents[0], *documents[4:]] if name == "b" else documents
            lists[name] += [
                f"{query} Q0 {document} {rank} {score:.6f} {name}"
                for rank, (document, score) in enumerate(zip(ranked, scores, strict=True), 1)
            ]
    for name, rows in lists.items():
        (dataset / f"{name}.trec").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (dataset / "qrels.txt").write_text("\n".join(qrels) + "\n", encoding="utf-8")
    text = "".join(f"{json.dumps(query)}\n" for query in queries)
    (dataset / "queries.jsonl").write_text(text, encoding="utf-8")
    (dataset / "dataset.yaml").write_text(
        "name: mine\nqrels: qrels.txt\nqueries: queries.jsonl\ngroups: declared\n"
        "runs: {a: {path: a.trec}, b: {path: b.trec}}\n"
        "rerank: {rr: {path: rr.trec, score_space: unbounded}}\n",
        encoding="utf-8",
    )
    return folder
