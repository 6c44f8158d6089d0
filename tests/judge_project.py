"""A project whose grades a model gave: two lists and a reranker over 40 queries of 3 documents.

People graded the same 120 pairs; they disagree with the model on d3 of every fourth query.
"""

from pathlib import Path

from tests.tiny import write_files

QUERIES = 40
EXPERIMENT = "experiments/mine.yaml"
DATASET = "datasets/mine/dataset.yaml"
PEOPLE = "judges: {people: {path: people.csv, kind: human}}\n"
FILES = {
    EXPERIMENT: """\
dataset: mine
measures: [nDCG@10]
baseline: a
systems:
  a: {runs: [a]}
  both: {runs: [a, b], blend: {method: position_aware, reranker: r}}
tune:
  system: both
  measure: nDCG@10
  trials: 4
  folds: 0
  choose: best
  parameters: {fusion.k: {choices: [10, 60]}}
gate:
  checks: {nDCG@10: {max_drop: 0.5}}
  system: both
""",
}


def make(root: Path, qrels: str, *, more: str = PEOPLE, run: str = "", rerank: str = "") -> Path:
    """Write all files below ``root`` and return it.

    Args:
        root: The project.
        qrels: Further keys of ``qrels``, such as ``kind: machine``.
        more: Further keys of the ``dataset.yaml``.
        run: Further keys of run b.
        rerank: Further keys of rerank list r.
    """
    lists: dict[str, list[str]] = {"a": [], "b": [], "r": []}
    model, people = [], ["query,document,grade\n"]
    for q in range(QUERIES):
        for d in range(1, 4):
            for name, step in (("a", 1), ("b", 2), ("r", q % 2 + 1)):
                lists[name].append(f"q{q} Q0 d{d} 0 {(d * step + q) % 5} {name}\n")
            grade = (d + q) % 3
            model.append(f"q{q} 0 d{d} {grade}\n")
            people.append(f"q{q},d{d},{(grade + (d == 3 and q % 4 == 0)) % 3}\n")
    texts = {f"datasets/mine/{name}.trec": "".join(rows) for name, rows in lists.items()}
    texts["datasets/mine/qrels.txt"] = "".join(model)
    texts["datasets/mine/people.csv"] = "".join(people)
    texts[DATASET] = (
        f"name: mine\nqrels: {{path: qrels.txt, {qrels}}}\n{more}"
        f"runs:\n  a: {{path: a.trec}}\n  b: {{path: b.trec{run}}}\n"
        f"rerank:\n  r: {{path: r.trec, score_space: unbounded{rerank}}}\n"
    )
    return write_files(root, {**FILES, **texts})
