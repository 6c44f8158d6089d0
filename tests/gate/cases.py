"""A dataset with enough queries for a test to say something, made by formula."""

from pathlib import Path

from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.run import run_gate
from fusion_bench.gate.update import update_baseline
from fusion_bench.util.files import baseline_path
from tests.tiny import write_files

#: Every query has one relevant document. `a` puts it first, `b` at place 1 + q mod 4.
QUERIES = 60
EXPERIMENT = "experiments/mine.yaml"
FILES = {
    "datasets/mine/dataset.yaml": """\
name: mine
qrels: qrels.txt
queries: queries.jsonl
runs:
  a: {path: a.trec, roles: [keyword]}
  b: {path: b.trec, roles: [question, semantic]}
rerank:
  r: {path: r.trec, score_space: unit}
""",
    EXPERIMENT: """\
dataset: mine
measures: [RR@10]
baseline: plain
systems:
  plain: {runs: [a, b]}
  live: {runs: [a]}
gate:
  checks:
    RR@10: {max_drop: 0.01}
    nDCG@10: {max_drop: 0.01}
  system: live
  slices: [local]
""",
}


def run_lines(place: dict[int, int], name: str, *, least: float = 0.5) -> str:
    """A run: query q has its relevant document at a place, four others around it.

    Args:
        place: Query → place of its relevant document.
        name: The tag.
        least: Score of the last document. A reranker's differs from that of the runs, whose scores
            it would otherwise seem to deal out again.
    """
    rows = []
    for q in range(QUERIES):
        others = iter(f"n{i}" for i in range(4))
        for rank in range(1, 6):
            document = f"d{q}" if rank == place[q] else next(others)
            score = least if rank == 5 else 1 - rank / 10
            rows.append(f"q{q} Q0 {document} {rank} {score} {name}")
    return "\n".join(rows) + "\n"


def make_project(root: Path, **changed: str) -> Path:
    """Write all files below ``root`` and return it; ``changed`` by the stem of a file."""
    queries = [
        f'{{"id": "q{q}", "type": "{"local" if q % 2 else "global"}", "group": "g{q // 2}"}}'
        for q in range(QUERIES)
    ]
    files = {
        **FILES,
        "datasets/mine/qrels.txt": "".join(f"q{q} 0 d{q} 1\n" for q in range(QUERIES)),
        "datasets/mine/queries.jsonl": "\n".join(queries) + "\n",
        "datasets/mine/a.trec": run_lines(dict.fromkeys(range(QUERIES), 1), "a"),
        "datasets/mine/b.trec": run_lines({q: 1 + q % 4 for q in range(QUERIES)}, "b"),
        "datasets/mine/r.trec": run_lines({q: 1 + q % 2 for q in range(QUERIES)}, "r", least=0.45),
    }
    return write_files(root, files, **changed)


def gate_inputs(root: Path, name: str = EXPERIMENT) -> GateInputs:
    return GateInputs(*read_experiment(root / name), [root / "datasets"])


def renew_baseline(
    root: Path, reason: str = "first", name: str = EXPERIMENT, *, anchor: bool = False
) -> Path:
    """The baseline, written or renewed; with ``anchor`` its values are the anchor, too."""
    path = root / baseline_path(Path(name))
    update_baseline(gate_inputs(root, name), path, reason, anchor=anchor)
    return path


def gate_verdict(root: Path, name: str = EXPERIMENT) -> GateVerdict:
    return run_gate(gate_inputs(root, name), root / baseline_path(Path(name)))
