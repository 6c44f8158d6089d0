"""What the gate stores of unjudged documents, and what they decide."""

from pathlib import Path

import numpy as np
import pytest

from fusion_bench.gate.baseline import CollectionBaseline, StoredUnjudged
from fusion_bench.gate.baseline_files import read_baseline
from fusion_bench.gate.checks import decides_status
from fusion_bench.gate.verdict import CheckStatus
from fusion_bench.stats.unjudged import UnjudgedDifference, UnjudgedEvidence
from fusion_bench.stats.values import MeasuredValues, Pair
from tests.gate import cases
from tests.gate.cases import EXPERIMENT, gate_verdict, renew_baseline
from tests.tiny import edit

M = 0.01
DATASET = "datasets/mine/dataset.yaml"


@pytest.mark.parametrize(
    ("status", "filled", "decides"),
    [
        ("pass", 0.0, False),
        ("pass", -0.02, True),
        ("pass", -0.01, True),
        ("pass", -0.009, False),
        ("regressed", 0.001, True),
        ("regressed", -0.001, False),
        ("unchanged", -0.1, False),
        ("inconclusive", -0.1, False),
    ],
)
def test_which_statuses_unjudged_documents_decide(
    status: CheckStatus, filled: float, decides: bool
) -> None:
    unjudged = UnjudgedDifference(0.5, 0.1, judged_only=None, filled=filled)
    assert decides_status(status, unjudged, M) is decides
    assert not decides_status(status, None, M)


def test_queries_are_paired_whatever_the_stored_order() -> None:
    before = StoredUnjudged(
        share=(0.0, 0.2, 0.4),
        judged_only={"RR": (0.1, 0.2, 0.3)},
        filled={"RR": (0.1, 0.2, 0.3)},
    )
    after = UnjudgedEvidence(
        np.array([0.4, 0.2, 0.0]), np.array([0.4, 0.3, 0.2]), np.array([0.5, 0.2, 0.1])
    )
    record = CollectionBaseline(
        collection="c",
        version="1",
        digests={},
        lists={},
        judgments="pooled",
        binary_relevance=1,
        split=None,
        query_type=None,
        queries=("c", "b", "a"),
        definitions={},
        values={"RR": (0.0, 0.0, 0.0)},
        unjudged=before,
    )
    old = record.measured_values(["a", "b", "c"])["RR"]
    pair = Pair(MeasuredValues(np.zeros(3), unjudged=after), old, ("a", "b", "c"), kind="pooled")
    found = pair.select_queries(np.array([True, True, False])).compare_unjudged(0.05)
    assert found is not None
    assert found.judged_only is not None
    assert found.judged_only.mean == pytest.approx(0.1)
    assert found.filled == pytest.approx(0.1)


def pooled(root: Path) -> Path:
    """A pool of the first document of list ``a`` and its neighbors n0 and n1, of even queries."""
    lines = [f"q{q} 0 d{q} 1\nq{q} 0 n0 0\nq{q} 0 n1 0\n" for q in range(cases.QUERIES)]
    return cases.make_project(root, qrels="".join(lines))


def test_a_baseline_keeps_what_unjudged_documents_could_change(tmp_path: Path) -> None:
    root = pooled(tmp_path)
    stored = read_baseline(renew_baseline(root))
    assert stored is not None
    unjudged = stored.collections[0].unjudged
    assert unjudged is not None
    assert set(unjudged.share) == {2 / 5}
    assert set(unjudged.judged_only["RR@10"]) == set(unjudged.filled["RR@10"]) == {1.0}
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    check = gate_verdict(root).checks[0]
    assert check.status == "regressed"
    assert check.unjudged is not None
    assert check.unjudged.judged_only is not None
    assert check.unjudged.judged_only < 0


@pytest.mark.parametrize(("declared", "has_shares"), [("complete", False), ("sparse", True)])
def test_complete_and_sparse_judgments(root: Path, declared: str, has_shares: bool) -> None:
    edit(root, DATASET, "name: mine", f"name: mine\njudgments: {declared}")
    stored = read_baseline(renew_baseline(root))
    assert stored is not None
    unjudged = stored.collections[0].unjudged
    assert (unjudged is not None) is has_shares
    if unjudged is not None:
        assert (unjudged.judged_only, unjudged.filled) == ({}, {})
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    assert gate_verdict(root).checks[0].status == "regressed"
