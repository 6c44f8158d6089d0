"""Failures on a real collection, counted once more in plain Python from the files."""

import gzip
import math
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.evaluation.details.relevant_ranks import list_relevant
from fusion_bench.evaluation.failures import find_failures, rank_stages
from fusion_bench.experiment.system import System
from fusion_bench.io.load_records import load_qrels, load_run
from tests.parity.data import parity_data

pytestmark = pytest.mark.parity

SOURCES = {"question": "org_manual_ance", "keyword": "org_manual_bm25", "hyde": "org_convdr"}
RERANKER = "org_manual_ance_bert"
REL = 2
BLEND = {"method": "replace", "reranker": RERANKER, "missing": "below"}

Scores = dict[str, dict[str, float]]


@cache
def read_scores(path: Path) -> Scores:
    scores: Scores = defaultdict(dict)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            query, _, document, _, score, _ = line.split()
            scores[query][document] = float(score)
    return scores


def sort_documents(scores: dict[str, float]) -> list[str]:
    greatest_first = sorted(scores, key=str.encode, reverse=True)
    return sorted(greatest_first, key=lambda document: -float(f"{scores[document]:.11e}"))


def count_plainly(folder: Path, *, reranked: bool) -> Counter[str]:
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (folder / "qrels.txt").read_text(encoding="utf-8").splitlines():
        query, _, document, grade = line.split()
        grades[query][document] = int(grade)
    lists = {role: read_scores(folder / f"runs/{n}.trec.gz") for role, n in SOURCES.items()}
    rerank = read_scores(folder / f"runs/{RERANKER}.trec.gz")
    counts: Counter[str] = Counter()
    for query, judged in grades.items():
        ranked = {role: sort_documents(scores.get(query, {})) for role, scores in lists.items()}
        terms: dict[str, list[float]] = defaultdict(list)
        for documents in ranked.values():
            for rank, document in enumerate(documents, 1):
                terms[document].append(1 / (60 + rank))
        fused = sort_documents({document: math.fsum(parts) for document, parts in terms.items()})
        final = fused
        if reranked:
            scored = {d: rerank[query][d] for d in fused[:50] if d in rerank.get(query, {})}
            final = sort_documents(scored) + [d for d in fused if d not in scored]
        for document in (d for d, grade in judged.items() if grade >= REL):
            counts["misses"] += document not in terms
            if document in terms:
                first, place = ranked["question"][:1] == [document], final.index(document)
                counts["first"] += first
                counts["dilutions"] += first and fused[0] != document
                counts["fused top"] += fused.index(document) < 3
                counts["burials"] += fused.index(document) < 3 and place >= 10
                above = [d for d in final[:place] if judged.get(d, REL) < REL]
                counts["final top"] += place < 10
                counts["inversions"] += place < 10 and bool(above)
    return counts


@cache
def align_collection(folder: Path) -> tuple[AlignedRuns, Qrels]:
    runs = [
        load_run(folder / f"runs/{name}.trec.gz", name=name, roles=frozenset({role}))
        for role, name in SOURCES.items()
    ]
    reranker = load_run(folder / f"runs/{RERANKER}.trec.gz", name=RERANKER)
    qrels = load_qrels(folder / "qrels.txt")
    return align(qrels, runs, rerankers=[reranker], spaces={RERANKER: "unbounded"}), qrels


@pytest.mark.parametrize(
    ("blend", "dilutions", "burials", "misses", "inversions"),
    [({"method": "none"}, 55, 0, 1029, 285), (BLEND, 55, 60, 1029, 354)],
)
def test_failures_on_a_real_collection(
    blend: dict[str, str], dilutions: int, burials: int, misses: int, inversions: int
) -> None:
    folder = parity_data("trec-cast-2021")
    aligned, qrels = align_collection(folder)
    system = System("s", [*SOURCES.values()], "rrf", blend)
    relevant = list_relevant(aligned, qrels, REL)
    stages = rank_stages(system, aligned)
    found = find_failures(aligned, relevant, stages, REL)
    plain = count_plainly(folder, reranked=blend is BLEND)
    failed = {kind: int(failures.is_failed.sum()) for kind, failures in found.items()}
    assert [*failed.values()] == [dilutions, burials, misses, inversions]
    assert [*failed.values()] == [
        plain[kind] for kind in ("dilutions", "burials", "misses", "inversions")
    ]
    exposed = {kind: int(failures.is_exposed.sum()) for kind, failures in found.items()}
    assert exposed["dilution"] == plain["first"]
    assert exposed["inversion"] == plain["final top"]
    assert exposed["burial"] == (plain["fused top"] if blend is BLEND else 0)
