"""Processor time of whole commands, each beside the same work done with a peer.

A peer starts in a process of its own, ``python -m benchmarks.commands PEER FILE …``. ranx has no
rerank blends: it fuses as many systems with RRF, each with another k, and tests with Student's t,
the cheapest that it has. ir_measures only computes the measures, and no test. For ERR it starts
gdeval, which is slow, so the same comparison without ERR has a row too. ranx tunes 66 weightings
once.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks.startup import cpu_seconds, run_piped
from benchmarks.timing import Row

if TYPE_CHECKING:
    import ranx

TITLE = "Whole commands"
ROOT = Path(__file__).parent.parent
ATTACK, REFEREE = ROOT / "datasets/attack", ROOT / "datasets/referee"
LISTS = ("bm25", "dense", "graph")
#: Measures of the comparison with ir_measures: gdeval computes its ERR, pytrec_eval all others.
MEASURES = ("nDCG@10", "AP", "RR", "ERR@20", "P@10")
WITHOUT_ERR = ("nDCG@10", "AP", "RR", "R@1000", "P@10")
#: What the user types, its arguments, its CPU seconds on an idle machine, the peer's arguments.
Command: TypeAlias = tuple[str, list[str], float, list[str]]


def rank_with_ranx(systems: str, qrels: str, *runs: str) -> None:
    """Fuse the runs so many times, measure and test; runs alone are systems, too."""
    import ranx

    judgments, lists = _read_with_ranx(qrels, runs)
    fused = []
    for k in range(1, 1 + int(systems) - len(lists)):
        fused.append(ranx.fuse(lists, method="rrf", params={"k": k}))
        fused[-1].name = f"rrf {k}"
    measures = ["ndcg@10", "mrr@10", "recall@100"]
    ranx.compare(judgments, [*lists, *fused], measures)


def _read_with_ranx(qrels: str, runs: Sequence[str]) -> tuple[ranx.Qrels, list[ranx.Run]]:
    """Judgments and lists; a query without results gets an empty list."""
    import ranx

    kinds = {path: "gz" if path.endswith(".gz") else "trec" for path in (qrels, *runs)}
    judgments = ranx.Qrels.from_file(qrels, kind=kinds[qrels])
    lists = [ranx.Run.from_file(run, kind=kinds[run], name=run) for run in runs]
    return judgments, [run.make_comparable(judgments) for run in lists]


def tune_with_ranx(qrels: str, *runs: str) -> None:
    """The best of the 66 weightings of three runs."""
    import ranx

    judgments, lists = _read_with_ranx(qrels, runs)
    ranx.optimize_fusion(judgments, lists, method="wsum", metric="ndcg@10", show_progress=False)


def measure_with_ir_measures(names: str, qrels: str, *runs: str) -> None:
    """The means of the measures, whose names commas separate, of all runs."""
    ir_measures: Any = import_module("ir_measures")  # its readers have no types
    measures = [ir_measures.parse_measure(name) for name in names.split(",")]
    judgments = list(ir_measures.read_trec_qrels(qrels))
    for run in runs:
        ir_measures.calc_aggregate(measures, judgments, ir_measures.read_trec_run(run))


def compare_dictionaries(path: str) -> None:
    """Import this package and compare what a dictionary has, as a notebook does."""
    import fusion_bench as fb

    data = json.loads(Path(path).read_text(encoding="utf-8"))
    fb.compare(data["qrels"], data["runs"], measures=["nDCG@10", "RR@10"])


def compare_dictionaries_with_ranx(path: str) -> None:
    """The same with ranx."""
    import ranx

    data = json.loads(Path(path).read_text(encoding="utf-8"))
    runs = [ranx.Run(run, name=name) for name, run in data["runs"].items()]
    ranx.compare(ranx.Qrels(data["qrels"]), runs, ["ndcg@10", "mrr@10"], make_comparable=True)


PEERS: dict[str, Callable[..., None]] = {
    "ranx": rank_with_ranx,
    "ranx, tuning": tune_with_ranx,
    "ranx, dictionaries": compare_dictionaries_with_ranx,
    "ir_measures": measure_with_ir_measures,
    "fusion_bench": compare_dictionaries,
}


def list_commands(folder: Path, *, toy: bool = False) -> Iterator[Command]:
    """All commands; toy ones are the last three, on small lists."""
    program = [sys.executable, "-m", "fusion_bench"]
    out = ["--out", str(folder / "out")]
    qrels = str(ATTACK / "qrels.txt.gz")
    lists = {name: str(ATTACK / f"runs/{name}.trec.gz") for name in LISTS}
    pair = [f"{name}={lists[name]}" for name in LISTS[:2]]
    if not toy:
        default, referee = (
            str(ROOT / f"experiments/{name}.yaml") for name in ("default", "referee")
        )
        fused = [qrels, *lists.values()]
        tested = [_write_tested(folder / "tested.txt"), *lists.values()]
        judged = [str(REFEREE / "qrels.txt"), *map(str, sorted((REFEREE / "runs").iterdir()))]
        rerank = ["--rerank", f"ltr={ATTACK / 'rerank/ltr.trec.gz'}"]
        yield "eval default.yaml", [*program, "eval", default, *out], 3.5, ["ranx", "31", *tested]
        yield "eval referee.yaml", [*program, "eval", referee, *out], 2.7, ["ranx", "19", *judged]
        yield (
            "try, two lists and a reranker",
            [*program, "try", *pair, "--qrels", qrels, *rerank, *out],
            3.5,
            ["ranx", "15", *fused[:3]],
        )
        yield "gate default.yaml", [*program, "gate", default, *out], 1.2, ["ranx", "4", *tested]
        yield (
            "tune, 100 trials, five folds",
            [*program, "tune", _copy_default(folder), "--trials", "100", "--folds", "5", *out],
            8.0,
            ["ranx, tuning", *fused],
        )
    yield from _compare_runs(folder, [*program, "compare"], toy=toy)
    path = write_dictionaries(folder / "data.json", queries=10 if toy else 100)
    ours = [sys.executable, "-m", "benchmarks.commands", "fusion_bench", str(path)]
    yield "import, fb.compare of 100 queries", ours, 0.5, ["ranx, dictionaries", str(path)]


def _compare_runs(folder: Path, program: list[str], *, toy: bool) -> Iterator[Command]:
    """Comparisons of ten made runs, which have files: with ERR, and without."""
    from benchmarks.cases import Size, make_case

    size = Size("toy", 5, 2, 10, 3, 40) if toy else Size("", 50, 10, 1_000, 203, 4_000)
    case = make_case(size)
    qrels = folder / "qrels.txt"
    numbered = {query[1:]: grades for query, grades in case.qrels.to_dict().items()}
    write_qrels(qrels, numbered)  # gdeval, which ir_measures asks for ERR, wants numbers
    paths = [str(folder / f"{run.name}.trec") for run in case.runs]
    for run, path in zip(case.runs, paths, strict=True):
        lines = run.to_trec().splitlines()
        Path(path).write_text("\n".join(line[1:] for line in lines) + "\n")
    named = [f"{Path(path).stem}={path}" for path in paths]
    for names in (MEASURES, WITHOUT_ERR):
        options = [option for name in names for option in ("--measure", name)]
        ours = [*program, *named, "--qrels", str(qrels), *options]
        title = f"compare, 10 runs of 50 × 1,000: {', '.join(names)}"
        yield title, ours, 2.0, ["ir_measures", ",".join(names), str(qrels), *paths]


def _copy_default(folder: Path) -> str:
    """The experiment with a dataset of its own, in which ``tune`` counts its looks."""
    shutil.copytree(ATTACK, folder / "datasets/attack")
    (folder / "experiments").mkdir()
    return str(shutil.copy(ROOT / "experiments/default.yaml", folder / "experiments"))


def _write_tested(path: Path) -> str:
    """The judgments of the queries that ``eval`` and ``gate`` look at."""
    import fusion_bench as fb

    data = fb.load_dataset("attack", runs=(), rerankers=())
    judged = data.qrels.to_dict()
    tested = [query.id for query in data.queries.values() if query.split == "test"]
    write_qrels(path, {query: judged[query] for query in tested if query in judged})
    return str(path)


def write_qrels(path: Path, judged: Mapping[str, Mapping[str, int]]) -> None:
    """Write judgments as trec_eval reads them."""
    rows = ((q, d, grade) for q, grades in judged.items() for d, grade in grades.items())
    path.write_text("".join(f"{q} 0 {d} {grade}\n" for q, d, grade in rows), encoding="utf-8")


def write_dictionaries(path: Path, queries: int) -> Path:
    """The first judged queries of the built-in collection, as JSON."""
    import fusion_bench as fb

    data = fb.load_dataset("attack", runs=LISTS[:2], rerankers=())
    qrels = dict(list(data.qrels.to_dict().items())[:queries])
    runs = {name: {q: run.to_dict()[q] for q in qrels} for name, run in data.runs.items()}
    path.write_text(json.dumps({"qrels": qrels, "runs": runs}), encoding="utf-8")
    return path


def rows(rounds: int, *, toy: bool = False) -> Iterator[Row]:
    """A row a command: medians. ranx is slow, and runs once."""
    with tempfile.TemporaryDirectory() as folder:
        for title, command, target, peer in list_commands(Path(folder), toy=toy):
            other = [sys.executable, "-m", "benchmarks.commands", *peer]
            ours, theirs = [], []
            for turn in range(rounds):
                ours.append(cpu_seconds(run_piped, *command))
                if turn == 0 or peer[0] == "ir_measures":
                    theirs.append(cpu_seconds(run_piped, *other))
            yield {
                "command": title,
                "CPU s": statistics.median(ours),
                "target s": target,
                "peer": peer[0].partition(",")[0],
                "peer CPU s": statistics.median(theirs),
            }


if __name__ == "__main__":
    PEERS[sys.argv[1]](*sys.argv[2:])
