"""Every rule: what it finds, what it leaves alone, and that the real system shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from fusion_bench.checks.lint import lint_systems
from fusion_bench.checks.lint_rule import DatasetFacts, load_rules, reproduce
from fusion_bench.data.records import ScoreSpace
from fusion_bench.experiment.system import System
from fusion_bench.methods.normalize import normalizers
from tests.checks.lint.cases import ALL, CASES, PAIR, Case, blend, facts, make_system
from tests.contract import cases as contract

FOUND = [case for case in CASES if case.message is not None]


def messages(case: Case, dataset: DatasetFacts | None) -> list[str]:
    datasets = () if dataset is None else (dataset,)
    found = lint_systems([make_system(case.keys)], datasets, engine=case.engine)
    return [item.problem.message for item in found if item.id == case.rule]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_rule_finds_what_it_is_about_and_nothing_else(case: Case) -> None:
    found = messages(case, facts())
    if case.message is None:
        assert found == []
    else:
        assert [case.message in message for message in found] == [True], found


def test_every_rule_has_a_case_of_both_kinds() -> None:
    assert {case.rule for case in FOUND} == set(load_rules())
    assert {case.rule for case in CASES if case.message is None} == set(load_rules())


@pytest.mark.parametrize("space", get_args(ScoreSpace))
@pytest.mark.parametrize("case", FOUND, ids=lambda case: case.rule)
def test_the_real_system_shows_what_a_finding_claims(case: Case, space: ScoreSpace) -> None:
    for item in lint_systems([make_system(case.keys)], [facts(space)], engine=case.engine):
        witness = item.problem.build_witness()
        assert witness.above or witness.scores or witness.dropped or witness.same_as is not None
        _, failed = reproduce(witness)
        assert failed == (), (item.id, witness)


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case.rule)
def test_rules_that_need_facts_are_silent_without_them(case: Case) -> None:
    rule = load_rules()[case.rule]
    found = messages(case, None)
    if rule.facts and case.keys.get("fusion") != FOUND_BY_CONFIGURATION:
        assert found == []


#: The z-scores of this one are negative whatever the roles are.
FOUND_BY_CONFIGURATION = {"method": "weighted_score", "normalize": "z_score", "missing": "zero"}


def systems_of_all_methods() -> list[System]:
    """Every fusion and every blend of the contract tests, with each other's defaults."""
    renamed = {"hyde": "graph"}
    fusions = [
        {
            key: {renamed.get(k, k): v for k, v in value.items()}
            if isinstance(value, dict)
            else value
            for key, value in fusion.items()
        }
        for fusion in contract.fusion_examples()
        if "lo" not in str(fusion)
    ]
    blends = [
        {**example, "reranker": "ltr"} if "reranker" in example else example
        for example in contract.blend_examples()
    ]
    pairs = [(fusion, {"method": "none"}) for fusion in fusions]
    pairs += [(fusion, example) for fusion in fusions[:8] for example in blends]
    return [
        System.model_validate({"name": f"s{i}", "runs": ALL, "fusion": fusion, "blend": example})
        for i, (fusion, example) in enumerate(pairs)
    ]


def test_every_method_can_be_linted_and_every_witness_holds() -> None:
    found = lint_systems(systems_of_all_methods(), [facts()])
    assert {item.id for item in found} > {"bonus-dominates", "rank-immovable"}
    for item in found:
        assert reproduce(item.problem.build_witness())[1] == (), item.id


def test_segments_are_fitted_to_the_few_documents_of_a_witness() -> None:
    """A witness gives a few ranks of long lists, which lie beyond the last segment."""
    tiers = blend("position_aware", tiers={1: 0.9, 3: 0.5, 9: 0.2})
    (item,) = lint_systems([make_system({"fusion": "prob_fuse", "blend": tiers})], [facts()])
    assert item.id == "blend-not-monotone"
    assert reproduce(item.problem.build_witness())[1] == ()


def test_every_normalizer_without_an_order_of_its_own_keeps_the_witnesses() -> None:
    needing = {"by_source", "theoretical_min_max"}
    names = [name for name in normalizers.load_built_in() if name not in needing]
    keys = [
        {"fusion": {"method": "weighted_score", "normalize": name, "missing": "zero"}, "blend": b}
        for name in names
        for b in (blend("position_aware"), blend("position_aware", retrieval="reciprocal_rank"))
    ]
    systems = [make_system({**key, "name": f"s{i}"}) for i, key in enumerate(keys)]
    found = lint_systems(systems, [facts()])
    assert {"missing-zero-negative", "rank-immovable"} <= {item.id for item in found}
    for item in found:
        assert reproduce(item.problem.build_witness())[1] == (), item.id


def test_a_claim_that_does_not_hold_is_reported() -> None:
    [item] = lint_systems([make_system({"runs": PAIR, "min_relevance": 0.3})])
    witness = item.problem.build_witness()
    fields = {name: getattr(witness, name) for name in ("lists", "dataset", "claim")}
    other = make_system({"runs": PAIR, "depth": 1})
    wrong = type(witness)(
        witness.system.model_copy(update={"min_relevance": None}),
        **fields,
        above=(("d1", "d1"),),
        scores={"d1": 1.0},
        dropped=("d1",),
        same_as=other.model_copy(update={"min_relevance": 1.0}),
    )
    assert len(reproduce(wrong)[1]) == 4


def test_an_engine_that_orders_otherwise_is_shown_to() -> None:
    system = make_system({"fusion": {"method": "rrf_v2", "weights": {"question": 1}}})
    found = lint_systems([system], [facts()], engine="opensearch")
    [item] = [item for item in found if item.id == "engine-cannot-express"]
    witness = item.problem.build_witness()
    [(first, second)] = witness.above
    assert f"OpenSearch ranks {second} above {first}" in witness.claim
    plain = make_system({"dialect": "opensearch", "fusion": "score-ranker-processor"})
    ranks = reproduce(replace(witness, system=plain, above=(), scores={}))[0].ranks
    assert ranks[second] < ranks[first]


def test_what_an_engine_cannot_do_is_shown_for_every_method() -> None:
    found = lint_systems(systems_of_all_methods()[::3], [facts()], engine="opensearch")
    items = [item for item in found if item.id == "engine-cannot-express"]
    assert len(items) > 5
    for item in items:
        assert reproduce(item.problem.build_witness())[1] == (), item.problem.message
