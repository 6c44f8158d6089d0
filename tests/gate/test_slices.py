"""Checks on slices by any field of the queries."""

import json
from pathlib import Path

import pytest

from fusion_bench.config.models import parse_model
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.settings import GatePolicy, split_slice
from tests.gate.cases import EXPERIMENT, QUERIES, gate_verdict, make_project, renew_baseline
from tests.tiny import edit

CHECKS = {"RR@10": {"max_drop": 0.01}}


def make(root: Path, slices: str) -> Path:
    make_project(root)
    queries = [
        {"id": f"q{q}", "type": "local", "intent": ("meta", "rules")[q % 3 == 0], "level": q % 2}
        for q in range(QUERIES)
    ]
    text = "".join(f"{json.dumps(query)}\n" for query in queries)
    (root / "datasets/mine/queries.jsonl").write_text(text, encoding="utf-8")
    edit(root, EXPERIMENT, "slices: [local]", f"slices: {slices}")
    return root


def test_slices_by_name() -> None:
    slices = ["local", {"intent": "meta"}, {"type": "global"}, {"level": 1}, "language: ja"]
    policy = parse_model(GatePolicy, {"checks": CHECKS, "slices": slices})
    assert policy.slices == ("local", "intent: meta", "global", "level: 1", "language: ja")
    assert parse_model(GatePolicy, policy.model_dump()) == policy
    assert split_slice("intent: meta") == ("intent", "meta")
    assert split_slice("local") == ("type", "local")


@pytest.mark.parametrize(
    ("slices", "message"),
    [
        ([{"intent": "meta", "language": "ja"}], "a slice is one field and its value"),
        ([{"intent": ["meta"]}], "intent: one value is needed"),
        ([{"id": "q1"}], "'id' is different for every query"),
        ([{"intent": "meta"}, "intent: meta"], "listed twice"),
    ],
)
def test_slices_that_break_a_rule(slices: list[object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_model(GatePolicy, {"checks": CHECKS, "slices": slices})


def test_a_check_sees_the_queries_of_its_slice(tmp_path: Path) -> None:
    root = make(tmp_path, "[intent: meta, level: 1, local]")
    renew_baseline(root)
    verdict = gate_verdict(root)
    assert {check.slice: check.queries for check in verdict.checks} == {
        None: QUERIES,
        "intent: meta": QUERIES * 2 // 3,
        "level: 1": QUERIES // 2,
        "local": QUERIES,
    }
    assert {check.status for check in verdict.checks} == {"unchanged"}


def test_a_value_without_a_query_is_an_error_and_so_is_an_unknown_field(tmp_path: Path) -> None:
    root = make(tmp_path, "[intent: faq]")
    renew_baseline(make(tmp_path / "other", "[intent: meta]"))
    with pytest.raises(ConfigError, match=r"gate\.slices: mine: .*'x'"):
        renew_baseline(make(tmp_path / "unknown", "[x: faq]"))
    renew_baseline(root)
    errors = {check.slice: check.error for check in gate_verdict(root).checks}
    assert errors.pop(None) is None
    assert "no query" in str(errors["intent: faq"])


def test_a_baseline_of_other_queries_cannot_be_compared(tmp_path: Path) -> None:
    root = make(tmp_path, "[intent: meta]")
    path = renew_baseline(root)
    assert '"where"' not in path.read_text(encoding="utf-8")
    edit(root, EXPERIMENT, "dataset: mine\n", "dataset: mine\nwhere: {level: 1}\n")
    verdict = gate_verdict(root)
    assert any("where" in reason for reason in verdict.refusals)
    renew_baseline(root, "level 1 only", anchor=True)
    assert '"where"' in path.read_text(encoding="utf-8")
    assert {check.queries for check in gate_verdict(root).checks if check.slice is None} == {30}
