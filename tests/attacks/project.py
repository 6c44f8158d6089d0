"""The project that attacks start from: 60 queries, two runs, a rerank list and a baseline."""

from pathlib import Path

from tests.gate import cases

EXPERIMENT = cases.EXPERIMENT
DATASET = "datasets/mine/dataset.yaml"
QRELS = "datasets/mine/qrels.txt"
QUERIES = "datasets/mine/queries.jsonl"
RUN = "datasets/mine/a.trec"
RERANK = "datasets/mine/r.trec"
BASELINE = "reports/baselines/mine.json"
#: Commands that end with 0 on the project as it is, in a second or two each.
EVAL = ("eval", EXPERIMENT, "--no-plots")
GATE = ("gate", EXPERIMENT)
UPDATE = ("gate", EXPERIMENT, "--update", "--reason", "tried")
TUNE = ("tune", EXPERIMENT, "--system", "plain", "--trials", "4", "--folds", "2", "--no-plots")


def make_project(root: Path) -> Path:
    cases.make_project(root)
    cases.renew_baseline(root)
    return root
