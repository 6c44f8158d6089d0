"""A project whose pool knows the documents of one list alone, so that its rival looks bad.

List ``pooled`` gave the pool. List ``fresh`` puts documents above the pool that nobody judged; of
the judged ones it orders even queries better. Its RR is lower by 1/6 on even queries and by 1/2 on
odd ones; over judged documents only it is higher by 1/2 and equal; filled it is higher by 1/2 and
equal, as all judged documents at its first ranks are relevant.
"""

from pathlib import Path

from tests.tiny import write_files

QUERIES = 60
EXPERIMENT = "experiments/mine.yaml"
DATASET = "datasets/mine/dataset.yaml"
FILES = {
    DATASET: """\
name: mine
qrels: qrels.txt
runs:
  pooled: {path: pooled.trec, roles: [keyword]}
  fresh: {path: fresh.trec, roles: [semantic]}
""",
    EXPERIMENT: """\
dataset: mine
measures: [RR@10]
baseline: pooled
systems:
  pooled: {runs: [pooled]}
  fresh: {runs: [fresh]}
  sum:
    runs: [pooled, fresh]
    fusion: {method: weighted_score, missing: zero, weights: {pooled: 0, fresh: 0.01}}
tune:
  system: sum
  measure: RR@10
  trials: 12
  folds: 0
  choose: best
  parameters: {fusion.weights.pooled: {choices: [0, 1]}}
gate:
  checks: {RR@10: {max_drop: 0.01}}
  system: pooled
""",
}


def make(root: Path) -> Path:
    lists: dict[str, list[str]] = {"pooled": [], "fresh": []}
    for q in range(QUERIES):
        if q % 2:
            lists["pooled"] += _rows(q, "relevant", "bad", "worse")
            lists["fresh"] += _rows(q, "new", "relevant", "bad", "worse")
        else:
            lists["pooled"] += _rows(q, "bad", "relevant", "worse")
            lists["fresh"] += _rows(q, "new", "newer", "relevant", "bad", "worse")
    grades = {"relevant": 1, "bad": 0, "worse": 0}
    files = {
        **FILES,
        "datasets/mine/qrels.txt": "".join(
            f"q{q} 0 {name}{q} {grade}\n" for q in range(QUERIES) for name, grade in grades.items()
        ),
        **{f"datasets/mine/{name}.trec": "".join(rows) for name, rows in lists.items()},
    }
    return write_files(root, files)


def _rows(query: int, *names: str) -> list[str]:
    return [
        f"q{query} Q0 {name}{query} {rank} {1 - rank / 10:.1f} x\n"
        for rank, name in enumerate(names, start=1)
    ]
