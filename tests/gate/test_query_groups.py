"""The groups that a gate compares by: those its baseline seals; and no pass without them."""

import json
from pathlib import Path

import pytest

from fusion_bench.gate.baseline_files import read_baseline
from fusion_bench.gate.page import describe_check
from fusion_bench.gate.verdict import CheckResult
from fusion_bench.util.digests import digest_json
from tests.gate.cases import EXPERIMENT, QUERIES, gate_verdict, renew_baseline
from tests.tiny import edit

SPEC = "datasets/mine/dataset.yaml"
PAIR = {"q0": "q0", "q1": "q0"}


def write_texts(root: Path, size: int, copies: int = QUERIES) -> None:
    """Queries without groups; of the first ``copies``, each ``size`` have one text."""
    lines = [
        {
            "id": f"q{q}",
            "type": "local" if q % 2 else "global",
            "text": digest_json({"asked": q // size if q < copies else -q}),
        }
        for q in range(QUERIES)
    ]
    (root / "datasets/mine/queries.jsonl").write_text("\n".join(map(json.dumps, lines)))


def first_check(root: Path) -> CheckResult:
    verdict = gate_verdict(root)
    assert not verdict.refusals
    return verdict.checks[0]


def sealed(path: Path) -> dict[str, str]:
    baseline = read_baseline(path)
    assert baseline is not None
    return baseline.collections[0].groups


def test_the_baseline_seals_the_groups_that_were_found(root: Path) -> None:
    write_texts(root, 2, copies=2)
    path = renew_baseline(root)
    assert sealed(path) == PAIR
    assert first_check(root).groups == QUERIES - 1
    write_texts(root, 1)
    assert first_check(root).groups == QUERIES - 1
    renew_baseline(root, "texts were corrected")
    assert sealed(path) == {}
    assert first_check(root).groups == QUERIES


def test_a_baseline_without_groups_keeps_none_until_it_is_renewed(root: Path) -> None:
    write_texts(root, 1)
    path = renew_baseline(root)
    write_texts(root, 2, copies=2)
    assert first_check(root).groups == QUERIES
    renew_baseline(root, "a query was asked twice")  # the anchor stays comparable
    assert sealed(path) == PAIR
    assert first_check(root).groups == QUERIES - 1


@pytest.mark.parametrize(
    ("size", "key", "status"),
    [
        (1, "", "pass"),
        (4, "", "inconclusive"),  # 15 groups would remain
        (4, "groups: none\n", "pass"),
    ],
)
def test_a_pass_waits_until_groups_are_settled(
    root: Path, size: int, key: str, status: str
) -> None:
    write_texts(root, size)
    edit(root, SPEC, "name: mine\n", f"name: mine\n{key}")
    edit(root, EXPERIMENT, "RR@10: {max_drop: 0.01}", "RR@10: {max_drop: 0.9}")
    renew_baseline(root)
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    check = first_check(root)
    assert check.status == status
    assert check.is_withheld is (status != "pass")
    starts = describe_check(check).startswith(
        "it would pass, but too many queries depend on others"
    )
    assert starts is check.is_withheld
