"""What per-query policies are worth on every collection: the tables of docs/studies/policies.md.

``python -m benchmarks.studies.policies`` runs the study and writes ``policies.json`` and the
tables; names of collections run only these. ``--table`` writes the tables from what is stored.
FUSION_BENCH_PARITY_DATA names the folder of all collections but ``attack``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.collections import ATTACK
from benchmarks.table import replace_between_marks
from fusion_bench.data.alignment import align
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import FusionBenchError
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.json_objects import load_queries
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.measures import parse_measure
from fusion_bench.report.policy_page import PolicyResult
from fusion_bench.tune.policy_study import StudyBudget, study_policy

STORED = Path(__file__).with_name("policies.json")
PAGE = Path(__file__).parents[2] / "docs" / "studies" / "policies.md"
MEASURE = "nDCG@10"
#: Collections whose lists come from agents: one source is nearly always better.
AGENTS = "weaviate-agents/"
#: A smaller gap between oracle and tuned fixed numbers has no part that is worth a number.
LEAST_GAP = 0.01
CONVEX = {"method": "weighted_score", "normalize": "min_max", "missing": "zero"}


@dataclass(frozen=True)
class Lists:
    """The lists of a collection.

    Attributes:
        keyword: Path of a run below ``runs``, without its suffix.
        semantic: Likewise.
        reranker: Path below the collection, and what its scores mean; None = none.
        qrels: The judgments.
        queries: File with the texts; empty = none.
    """

    keyword: str
    semantic: str
    reranker: tuple[str, ScoreSpace] | None = None
    qrels: str = "qrels.txt"
    queries: str = ""


COLLECTIONS: Mapping[str, Lists] = {
    "jqara": Lists("bm25", "bge-m3+dense", ("rerank/bge-reranker-v2-m3", "unit")),
    "trec-cast-2021": Lists(
        "org_manual_bm25", "org_manual_ance", ("runs/org_manual_ance_bert", "unbounded")
    ),
    "trec-dl-2019": Lists(
        "bm25", "tas-b", ("rerank/rankvicuna-on-splade", "order"), queries="queries.jsonl"
    ),
    "codec": Lists("bm25", "ance", ("rerank/monot5-on-bm25", "log_prob")),
    "trec-covid-round2": Lists("cord19.vespa.ai-bm25", "covidex.t5"),
    **{
        f"{AGENTS}bright-{topic}": Lists("hybrid-search-1", "effort-high-1")
        for topic in ("biology", "economics", "robotics")
    },
    "nfcorpus": Lists("bm25", "minilm", qrels="qrels/test.trec", queries="queries.jsonl"),
}


def load_collection(name: str) -> tuple[Any, Any]:
    """Aligned runs named ``keyword`` and ``semantic``, and judgments."""
    if name == "attack":
        data = load_dataset(ATTACK, rerankers={"ltr"})
        runs = [
            replace(data.runs[old], name=new, roles=frozenset({new}))
            for new, old in (("keyword", "bm25"), ("semantic", "dense"))
        ]
        reranker = [replace(data.rerankers["ltr"], name="reranker")]
        spaces: dict[str, ScoreSpace] = {"reranker": data.spaces["ltr"]}
        return align(
            data.qrels, runs, rerankers=reranker, queries=data.queries, spaces=spaces
        ), data.qrels
    lists, folder = COLLECTIONS[name], Path(os.environ["FUSION_BENCH_PARITY_DATA"]) / name
    options = ReadOptions(on_duplicate="best_rank")

    def load(path: str, new: str) -> Run:
        roles = frozenset({new})
        return load_run(folder / f"{path}.trec.gz", name=new, roles=roles, read_options=options)

    runs = [load(f"runs/{getattr(lists, role)}", role) for role in ("keyword", "semantic")]
    reranker = [load(lists.reranker[0], "reranker")] if lists.reranker else []
    qrels = load_qrels(folder / lists.qrels)
    queries = load_queries(folder / lists.queries) if lists.queries else {}
    spaces = {"reranker": lists.reranker[1]} if lists.reranker else {}
    return align(qrels, runs, rerankers=reranker, queries=queries, spaces=spaces), qrels


def list_systems(name: str) -> Iterator[System]:
    """The systems whose policies are judged on a collection."""
    runs = ("keyword", "semantic")
    has_text = name != "attack" and bool(COLLECTIONS[name].queries)
    yield System("convex, entropy_alpha", runs, CONVEX, policy="entropy_alpha")
    yield System("rrf, entropy_alpha", runs, "rrf", policy="entropy_alpha")
    yield System("rrf, margin_silencing", runs, "rrf", policy="margin_silencing")
    weights = {"method": "overlap_rules", "below": {"weights": {"semantic": 3}}}
    yield System("rrf, overlap_rules (weights)", runs, "rrf", policy=weights)
    method = {"method": "overlap_rules", "below": {"fusion": CONVEX}}
    yield System("rrf, overlap_rules (method)", runs, "rrf", policy=method)
    yield System("rrf, regression", runs, "rrf", policy={"method": "regression", "words": has_text})
    if name == "attack" or COLLECTIONS[name].reranker:
        blend = {"method": "linear", "reranker": "reranker", "depth": 50, "missing": "below"}
        yield System(
            "rrf, rerank_when_ambiguous", runs, "rrf", blend, policy="rerank_when_ambiguous"
        )


def run_study(names: list[str]) -> None:
    """Judge every policy on these collections, and store each result as soon as it is there."""
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    for name in names:
        runs, qrels = load_collection(name)
        for system in list_systems(name):
            start = time.perf_counter()
            try:
                result = study_policy(
                    system,
                    runs,
                    parse_measure(MEASURE),
                    qrels=qrels,
                    collection=name,
                    budget=StudyBudget(),
                )
            except FusionBenchError as error:
                print(f"{name}: {error}")
                continue
            stored[f"{name}: {system.name}"] = result.model_dump(mode="json")
            STORED.write_text(f"{json.dumps(stored, indent=1)}\n")
            print(
                f"{time.perf_counter() - start:.1f} s", *format_row(result), sep=" | ", flush=True
            )


def format_row(r: PolicyResult) -> tuple[str, ...]:
    """The cells of a result."""
    return (
        r.collection,
        r.system,
        f"{r.default:.4f}",
        "" if r.configured is None else f"{r.configured:.4f}",
        f"{r.fixed:.4f}",
        f"{r.tuned:.4f}",
        f"{r.difference:+.4f} [{r.low:+.4f}, {r.high:+.4f}]",
        f"{r.null_mean:+.4f}, {r.null_high:+.4f}",
        f"{r.null_p:.3f}",
        f"{r.shuffled_above}, {r.shuffled_pays}",
        f"{r.oracle:.4f}",
        "" if r.oracle_by_chance is None else f"{r.oracle_by_chance:.4f}",
        "" if r.reranked is None else f"{100 * r.reranked:.0f} %",
        r.verdict,
    )


def read_results() -> list[PolicyResult]:
    """The stored results, by collection."""
    stored = json.loads(STORED.read_text(encoding="utf-8")).values()
    return sorted(map(PolicyResult.model_validate, stored), key=lambda r: r.collection)


def format_counts(results: Sequence[PolicyResult]) -> str:
    """What the results say together."""
    measured = [r for r in results if not r.collection.startswith(AGENTS)]
    lower = [r.configured < r.default for r in measured if r.configured is not None]
    oracles = [r.oracle - r.fixed for r in measured]
    chances = [
        100 * (r.oracle_by_chance - r.fixed) / (r.oracle - r.fixed)
        for r in measured
        if r.oracle_by_chance is not None and r.oracle - r.fixed > LEAST_GAP
    ]
    reranked = [100 * r.reranked for r in results if r.reranked is not None]
    shufflings = max(r.shufflings for r in results)
    rows = {
        "policies that were judged": f"{len(results)}",
        "collections": f"{len({r.collection for r in results})}",
        "policies that pay": f"{sum(r.verdict == 'pays' for r in results)}",
        "intervals that hold a gain of .005 or more": f"{sum(r.high >= 0.005 for r in results)}",
        f"most of {shufflings} shufflings of a policy with an interval above 0": (
            f"{max(r.shuffled_above for r in results)}"
        ),
        f"most of {shufflings} shufflings of a policy that pass the whole rule": (
            f"{max(r.shuffled_pays for r in results)}"
        ),
        "queries that a tuned `rerank_when_ambiguous` reranks": (
            f"{min(reranked):.0f} to {max(reranked):.0f} %"
        ),
        "oracle − tuned fixed, without agents": f"{min(oracles):.2f} to {max(oracles):.2f}",
        f"part of this that chance reaches, of the {len(chances)} above {LEAST_GAP}": (
            f"{min(chances):.0f} to {max(chances):.0f} %, median {median(chances):.0f} %"
        ),
        "lower as configured than without the policy, without agents": (
            f"{sum(lower)} of {len(lower)}"
        ),
    }
    lines = [f"| {name} | {value} |" for name, value in rows.items()]
    return "\n".join(["| | |", "|:--|--:|", *lines])


def format_table(results: Sequence[PolicyResult]) -> str:
    """A row a result."""
    heads = (
        "collection",
        "system",
        "no policy",
        "as configured",
        "tuned fixed",
        "tuned policy",
        "difference [95 %]",
        "shuffled: mean, 97.5 %",
        "p",
        "above 0, pay of 200",
        "oracle",
        "by chance",
        "reranked",
        "verdict",
    )
    lines = [heads, ("---",) * len(heads), *map(format_row, results)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_tables() -> None:
    """Put the stored results into the page."""
    results = read_results()
    replace_between_marks(PAGE, f"\n{format_counts(results)}\n\n", "counts")
    replace_between_marks(PAGE, f"\n{format_table(results)}\n\n", "policies")


if __name__ == "__main__":
    given = sys.argv[1:]
    if given != ["--table"]:
        run_study(given or ["attack", *COLLECTIONS])
    if PAGE.exists():
        write_tables()
