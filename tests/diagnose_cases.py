"""A dataset whose failures can be counted by hand.

Five queries in three groups. ``a`` is relevant and first in the question's list ``dense`` for q1 to
q4; for q1 to q3 ``b`` displaces it, which ``bm25`` ranks first. In q1 ``b`` is judged not relevant.
What q5 needs is in no list. The reranker turns the fused list of twelve documents round.
"""

from pathlib import Path

EXPERIMENT = "experiments/mine.yaml"
OTHERS = [f"x{i:02}" for i in range(10)]
FIRST = {q: ["b", "a"] if q in {"q1", "q2", "q3"} else ["a", "b"] for q in ("q1", "q2", "q3", "q4")}

DATASET = """\
name: mine
qrels: qrels.txt
queries: queries.jsonl
runs:
  dense: {path: dense.trec, roles: [question]}
  bm25: {path: bm25.trec, roles: [keyword]}
rerank:
  r: {path: r.trec, score_space: unit}
"""
SYSTEMS = """\
dataset: mine
measures: [nDCG@10]
baseline: plain
systems:
  plain: {runs: [dense, bm25], fusion: {method: rrf, k: 1, weights: {bm25: 3}}}
  question: {runs: [dense, bm25], fusion: {method: rrf, weights: {question: 100}}}
  buried:
    runs: [dense, bm25]
    fusion: {method: rrf, k: 1, weights: {bm25: 3}}
    blend: {method: replace, reranker: r, missing: below}
  keyword: {runs: [bm25]}
"""


def make_project(root: Path) -> Path:
    folder = root / "datasets/mine"
    folder.mkdir(parents=True)
    (root / "experiments").mkdir()
    (root / EXPERIMENT).write_text(SYSTEMS, encoding="utf-8")
    files = {
        "dataset.yaml": DATASET,
        "qrels.txt": "".join(f"q{q} 0 {'z' if q == 5 else 'a'} 1\n" for q in range(1, 6))
        + "q1 0 b 0\n",
        "queries.jsonl": "".join(
            f'{{"id": "q{q}", "group": "g{(q + 1) // 2}"}}\n' for q in range(1, 6)
        ),
        "dense.trec": _format_run({q: ["a", "b", *OTHERS] for q in FIRST}),
        "bm25.trec": _format_run({q: [*first, *OTHERS] for q, first in FIRST.items()}),
        "r.trec": _format_run({q: [*OTHERS, *first[::-1]] for q, first in FIRST.items()}),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return root


def _format_run(lists: dict[str, list[str]]) -> str:
    return "".join(
        f"{query} Q0 {document} {rank} {1 - rank / 20} run\n"
        for query, documents in lists.items()
        for rank, document in enumerate(documents, 1)
    )
