"""The project of the gate's tests with judges: people on a sample of queries, a machine on all."""

from pathlib import Path

from fusion_bench.stats.intervals import draw_queries
from tests.gate import cases

DATASET = "datasets/mine/dataset.yaml"
SAMPLED = 24
ESTIMATE = [
    "grades",
    "estimate",
    cases.EXPERIMENT,
    "--human-judge",
    "people",
    "--machine-judge",
    "llm",
]
JUDGES = """\
judges:
  people: {path: people.txt, kind: human, sample: random}
  picked: {path: people.txt, kind: human, sample: chosen}
  volunteers: {path: people.txt, kind: human}
  llm: {path: llm.txt, kind: machine}
"""


def make_judged_project(root: Path) -> Path:
    return add_judges(cases.make_project(root))


def add_judges(root: Path) -> Path:
    """Let people judge a sample of the queries, as the qrels do, and a machine all of them."""
    every = [f"q{q}" for q in range(cases.QUERIES)]
    people = draw_queries(every, SAMPLED)
    mine = root / "datasets/mine"
    judged = "".join(f"{query} 0 d{query[1:]} 1\n" for query in people)
    (mine / "people.txt").write_text(judged, encoding="utf-8")
    extra = "".join(f"q{q} 0 n0 1\n" for q in range(0, cases.QUERIES, 3))
    qrels = (mine / "qrels.txt").read_text(encoding="utf-8")
    (mine / "llm.txt").write_text(qrels + extra, encoding="utf-8")
    path = root / DATASET
    path.write_text(path.read_text(encoding="utf-8") + JUDGES, encoding="utf-8")
    return root


def replace_in_dataset(root: Path, old: str, new: str) -> None:
    path = root / DATASET
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
