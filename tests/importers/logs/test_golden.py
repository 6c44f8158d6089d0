"""A log that the bench writes gives the bench's numbers back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fusion_bench import evaluate_systems
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.importers.log_dataset import write_log_dataset
from fusion_bench.importers.options import LogOptions
from fusion_bench.io.dataset import load_dataset
from fusion_bench.ranking.final_lists import make_final_lists
from tests.importers.logs import cases

RERANKED = {"method": "replace", "reranker": "ltr", "depth": 50, "missing": "below"}
QUERIES = 12
MEASURES = ["nDCG@10", "RR@10", "R@100"]


@pytest.mark.parametrize("reranker", [None, "ltr"])
def test_a_log_gives_the_numbers_of_the_bench(tmp_path: Path, reranker: str | None) -> None:
    judged, bench = cases.load_attack(QUERIES)
    queries = bench.queries
    system = cases.make_system(**({} if reranker is None else {"blend": RERANKED}))
    lists = make_final_lists(system, bench, {"ltr": "unbounded"})
    log = tmp_path / "results.jsonl"
    log.write_text("\n".join(cases.log_lists(lists, reranker)), encoding="utf-8")
    names = tmp_path / "queries.jsonl"
    lines = [json.dumps({"id": query, "text": f"text of {query}"}) for query in queries]
    names.write_text("\n".join(lines), encoding="utf-8")
    qrels = tmp_path / "judged.txt"
    grades = judged.to_dict()
    rows = [(q, d, g) for q in queries for d, g in grades[q].items()]
    qrels.write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in rows), encoding="utf-8")

    folder = tmp_path / "mine"
    made = write_log_dataset(log, LogOptions(out=folder, qrels=qrels, queries=names))

    assert (made.queries, made.check.same_order, made.check.differing) == (QUERIES, QUERIES, ())
    assert made.check.same_scores == (QUERIES if reranker is None else made.check.same_scores)
    read = load_dataset(folder / "dataset.yaml")
    wanted, production = lists.to_run().to_dict(), read.runs["production"].to_dict()
    assert {q: list(ranked) for q, ranked in production.items()} == {
        q: list(ranked) for q, ranked in wanted.items()
    }
    if reranker is None:
        assert production == wanted
    experiment, _ = read_experiment(folder / "experiment.yaml")
    replay, as_logged = (experiment.systems[name] for name in ("replay", "production"))
    runs = read.aligned(list(read.runs), ties=experiment.ties)
    [values] = evaluate_systems(system, bench, MEASURES, spaces={"ltr": "unbounded"})
    found = evaluate_systems([replay, as_logged], runs, MEASURES, spaces=read.spaces)
    for scores in found:
        for measure, by_query in scores.to_dict().items():
            assert by_query == values.to_dict()[measure]
    assert max(values.to_dict()["nDCG@10"].values()) > 0
