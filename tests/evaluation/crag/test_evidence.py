"""The evidence on rerank lists and systems of the tiny dataset, by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.evaluation.crag import list_evidence, system_evidence
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.settings import CragRule
from fusion_bench.io.dataset import load_dataset
from tests import tiny

QUERIES = ("q1", "q2", "q3", "q4")


def test_a_list_by_itself(tmp_path: Path) -> None:
    dataset = load_dataset(tiny.make(tmp_path) / tiny.DATASET)
    evidence = list_evidence(dataset, "r", QUERIES, CragRule())
    assert evidence.scores.tolist() == [0.9, 0.8, 0.6, 0.7]
    assert evidence.relevant.tolist() == [True] * 4
    strict = list_evidence(dataset, "r", ("q2", "q3"), CragRule(grade=2))
    assert strict.scores.tolist() == [0.8, 0.6]
    assert strict.relevant.tolist() == [True, False]


def test_only_the_top_counts_and_a_query_without_a_list_has_no_score(tmp_path: Path) -> None:
    r = "q1 Q0 d2 1 0.9 r\nq1 Q0 d1 2 0.8 r\nq2 Q0 d3 1 0.1 r\n"
    dataset = load_dataset(tiny.make(tmp_path, r=r) / tiny.DATASET)
    first = list_evidence(dataset, "r", QUERIES, CragRule(top=1))
    np.testing.assert_array_equal(first.scores, [0.9, 0.1, math.nan, math.nan])
    assert first.relevant.tolist() == [False, True, False, False]
    assert list_evidence(dataset, "r", QUERIES, CragRule(top=2)).relevant.tolist()[0] is True


@pytest.mark.parametrize(("space", "link"), [("logit", lambda x: 1 / (1 + math.exp(-x)))])
def test_scores_are_brought_to_the_unit_scale(tmp_path: Path, space: str, link: object) -> None:
    root = tiny.make(tmp_path)
    tiny.edit(root, tiny.DATASET, "score_space: unit", f"score_space: {space}")
    evidence = list_evidence(load_dataset(root / tiny.DATASET), "r", ("q1",), CragRule())
    assert callable(link)
    assert evidence.scores[0] == pytest.approx(link(0.9))


def test_the_final_lists_of_a_system(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    tiny.edit(root, tiny.EXPERIMENT, "reranker: r}", "reranker: r}\n    top_k: 1")
    dataset = load_dataset(root / tiny.DATASET)
    experiment, _ = read_experiment(root / tiny.EXPERIMENT)
    runs = dataset.aligned(["a", "b"])
    evidence = system_evidence(experiment.systems["two"], runs, CragRule())
    assert evidence is not None
    assert runs.queries == ("q1", "q2", "q3", "q4")
    # q2: d3 is second in both lists, and d4 and d8 are first in one each.
    assert evidence.scores.tolist() == [0.9, 0.8, 0.6, 0.7]
    assert system_evidence(experiment.systems["one"], runs, CragRule()) is None
