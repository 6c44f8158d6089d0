"""Ties inside a real dense retriever's list, which has scores of three decimals."""

import numpy as np
import pytest

from fusion_bench.checks.source_ties import find_source_ties
from fusion_bench.data.alignment import align
from fusion_bench.experiment.system import System
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.system_scores import evaluate_systems
from tests.parity.data import parity_data

pytestmark = pytest.mark.parity


def test_a_list_of_rounded_scores_is_not_certain() -> None:
    folder = parity_data("trec-dl-2019")
    qrels = load_qrels(folder / "qrels.txt")
    names = ("repllama", "bm25")
    runs = align(qrels, [load_run(folder / f"runs/{n}.trec.gz", name=n) for n in names])
    systems = {name: System(name, [name]) for name in names}
    measures = [parse_measure("nDCG@10")]
    scores = evaluate_systems([*systems.values()], runs, measures)
    values = {each.system: each.values for each in scores}
    found = find_source_ties(systems, values, runs, measures)
    assert {name: each.ties.affected.tolist() for name, each in found.items()} == {
        "repllama": [29],
        "bm25": [0],
    }
    ties = found["repllama"].ties
    assert found["repllama"].settlements is None
    means = [float(np.mean(each)) for each in (ties.minimum, values["repllama"], ties.maximum)]
    assert means == pytest.approx([0.7340, 0.7384, 0.7505], abs=5e-5)
