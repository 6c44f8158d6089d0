"""The rules of lint, and what they find in an experiment."""

import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import yaml

from fusion_bench.checks.lint import (
    lint_experiment,
    lint_systems,
    make_lint_report,
    read_dataset_facts,
)
from fusion_bench.checks.lint_rule import DatasetFacts, load_rules, reproduce
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import UnknownNameError
from fusion_bench.evaluation.in_memory import make_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.methods.normalize import normalizers
from tests.checks.lint.cases import ALL, CASES, PAIR, Case, blend, facts, make_system
from tests.contract import cases as contract
from tests.tiny import DATASET, EXPERIMENT, FILES, edit, make

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


def test_every_method_and_normalizer_can_be_linted_and_every_witness_holds() -> None:
    found = lint_systems(systems_of_all_methods(), [facts()])
    assert {item.id for item in found} > {"bonus-dominates", "rank-immovable"}
    for item in found:
        assert reproduce(item.problem.build_witness())[1] == (), item.id
    # A witness gives a few ranks of long lists, which lie beyond the last segment.
    tiers = blend("position_aware", tiers={1: 0.9, 3: 0.5, 9: 0.2})
    (item,) = lint_systems([make_system({"fusion": "prob_fuse", "blend": tiers})], [facts()])
    assert item.id == "blend-not-monotone"
    assert reproduce(item.problem.build_witness())[1] == ()
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


# ── lint experiment


KEYS = {"blend": blend("position_aware", retrieval="reciprocal_rank"), "runs": ["bm25", "dense"]}
SYSTEMS = {"a": KEYS, "b": {**KEYS, "fusion": "convex"}, "c": {"runs": ["bm25", "dense"]}}


def test_findings_are_one_a_rule_and_name_systems_and_unchecked_rules() -> None:
    experiment, source = make_experiment("mine", SYSTEMS, dataset="made")
    found = lint_experiment(experiment, source, [facts()])
    assert {finding.id: finding.systems for finding in found} == {
        "blend-not-monotone": ("a", "b"),
        "rank-immovable": ("a", "b"),
    }
    assert [finding.datasets for finding in found] == [("made",)] * 2
    report = make_lint_report(experiment, source, [facts()], systems=["c"])
    assert (report.systems, report.findings) == (("c",), ())
    with pytest.raises(UnknownNameError, match="known: a, b, c"):
        make_lint_report(experiment, source, [facts()], systems=["d"])
    report = make_lint_report(experiment, source, [])
    assert report.unchecked == tuple(name for name, rule in load_rules().items() if rule.facts)
    assert "rank-immovable" in {finding.id for finding in report.findings}
    assert make_lint_report(experiment, source, [facts()]).unchecked == ()


def test_an_ignored_rule_is_left_out_and_an_unknown_one_is_an_error() -> None:
    lint = {"ignore": ["rank-immovable"]}
    experiment, source = make_experiment("mine", SYSTEMS, dataset="made", lint=lint)
    report = make_lint_report(experiment, source, [facts()])
    assert [finding.id for finding in report.findings] == ["blend-not-monotone"]
    assert report.ignored == ("rank-immovable",)
    wrong, source = make_experiment("mine", SYSTEMS, dataset="made", lint={"ignore": ["rank"]})
    with pytest.raises(UnknownNameError, match=r"lint\.ignore.*'rank'.*bonus-dominates"):
        lint_experiment(wrong, source, [facts()])


def test_a_witness_tells_the_ranks_and_scores_of_the_real_system() -> None:
    experiment, source = make_experiment("mine", {"a": KEYS}, dataset="made")
    report = make_lint_report(experiment, source, [facts()])
    [finding] = [item for item in report.findings if item.id == "rank-immovable"]
    first, second, *_ = finding.witness.documents
    assert (first.rerank, first.final_rank, first.final_score) == (0.0, 1, 0.75)
    assert second.ranks == {"bm25": 500, "dense": 500}
    assert second.final_score == pytest.approx(0.4 / 11 + 0.6)
    assert finding.witness.system["blend"]["retrieval"] == "reciprocal_rank"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_facts_come_from_the_dataset_file_and_types_only_where_they_are_needed(tiny: Path) -> None:
    experiment, source = read_experiment(tiny / EXPERIMENT)
    [known] = read_dataset_facts(experiment, source, [tiny / "datasets"])
    assert (known.name, known.spaces, known.types) == ("tiny", {"r": "unit"}, None)
    assert known.roles["b"] == {"question", "semantic"}
    by_type = ["systems.one.weights_by_type={hybrid: {a: 0.5, b: 0.5}, local: {a: 0, b: 1}}"]
    experiment, source = read_experiment(tiny / EXPERIMENT, overrides=by_type)
    [known] = read_dataset_facts(experiment, source, [tiny / "datasets"])
    assert known.types == frozenset({"local", "global", "relationship"})
    found = lint_experiment(experiment, source, [known])
    assert "weights-by-type-untyped" not in {finding.id for finding in found}


def test_a_finding_says_where_its_value_stands(tiny: Path) -> None:
    experiment, source = read_experiment(tiny / EXPERIMENT)
    facts_of_tiny = read_dataset_facts(experiment, source, [tiny / "datasets"])
    found = lint_experiment(experiment, source, facts_of_tiny)
    [bonus] = [finding for finding in found if finding.id == "rerank-swamps-retrieval"]
    assert bonus.where == f"{tiny / EXPERIMENT}:10: systems.two.blend.retrieval"
    assert bonus.docs == "docs/reference/lint.md#rerank-swamps-retrieval"


BONUS = {"method": "rrf_v2", "weights": {"question": 2}, "bonus": {1: 0.5}}
STAGED = {"runs": ["first", "bm25"], "stages": {"first": {"runs": ["dense", "graph"]}}}


def test_stages_are_looked_at_with_their_roles_under_their_system() -> None:
    stages = {"first": {"runs": ["dense"]}}
    keys = {"runs": ["first", "bm25"], "stages": stages, "fusion": BONUS}
    experiment, source = make_experiment("mine", {"a": keys}, dataset="made")
    report = make_lint_report(experiment, source, [facts()])
    assert "bonus-dominates" in {finding.id for finding in report.findings}
    assert report.unchecked_systems == ()
    inner = {"runs": ["bm25", "dense"], "fusion": BONUS}
    outer = {"runs": ["middle"], "stages": {"middle": {**STAGED, "stages": {"first": inner}}}}
    experiment, source = make_experiment("mine", {"a": outer}, dataset="made")
    [finding] = make_lint_report(experiment, source, [facts()]).findings
    assert (finding.id, finding.systems) == ("bonus-dominates", ("a",))
    assert "systems.a.stages.middle.stages.first.fusion" in finding.where
    system = make_system({**STAGED, "stages": {"first": {"runs": PAIR, "fusion": "condorcet"}}})
    assert lint_systems([system], [facts()], engine="opensearch") == []


@pytest.mark.parametrize("retrieval", ["reciprocal_rank", "fused", "fused_min_max"])
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 10, 11, 60])
def test_a_witness_lies_within_the_depth(depth: int, retrieval: str) -> None:
    keys = {**KEYS, "blend": blend("position_aware", retrieval=retrieval), "depth": depth}
    experiment, source = make_experiment("mine", {"a": keys}, dataset="made")
    report = make_lint_report(experiment, source, [facts()])
    found = {finding.id for finding in report.findings}
    assert ("blend-not-monotone" in found) == (depth > (5 if retrieval == "fused_min_max" else 3))


@pytest.mark.parametrize("fusion", ["condorcet", "logistic_regression"])
def test_a_fusion_whose_scores_are_far_apart_keeps_the_order_at_a_step(fusion: str) -> None:
    keys = {**KEYS, "blend": blend("position_aware", retrieval="fused_min_max"), "fusion": fusion}
    experiment, source = make_experiment("mine", {"a": keys}, dataset="made")
    report = make_lint_report(experiment, source, [facts()])
    assert "blend-not-monotone" not in {finding.id for finding in report.findings}


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("[other]", "run a has no effect: it is on where (intent: other), and no query of tiny is"),
        ("[meta]", None),
        ("[meta, rules]", "when of run a has no effect: every query of tiny meets (intent: meta"),
    ],
)
def test_a_condition_that_nothing_or_everything_meets(
    when: str, message: str | None, tmp_path: Path
) -> None:
    text = FILES["datasets/tiny/queries.jsonl"]
    intents = text.replace('"local"', '"local", "intent": "meta"')
    root = make(
        tmp_path, queries=re.sub(r'("(?:global|relationship)")', r'\1, "intent": "rules"', intents)
    )
    edit(root, DATASET, "roles: [keyword]", f"roles: [keyword], when: {{intent: {when}}}")
    experiment, source = read_experiment(root / EXPERIMENT)
    facts_read = read_dataset_facts(experiment, source, [root / "datasets"])
    report = make_lint_report(experiment, source, facts_read)
    found = [item.message for item in report.findings if item.id == "no-effect"]
    assert all(text.startswith(str(message)) for text in found)
    assert bool(found) is (message is not None)


# ── docs/reference/lint.md has a section for each rule, with an example in which it is found


PAGE = (Path(__file__).parents[3] / "docs/reference/lint.md").read_text(encoding="utf-8")
HEADINGS = ["What it does", "Why", "Example", "What to do"]
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_every_rule_has_its_section_and_every_section_its_rule() -> None:
    assert list(SECTIONS) == list(load_rules())


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_has_its_headings_and_an_example_with_the_finding(name: str) -> None:
    assert re.findall(r"^### (.*)$", SECTIONS[name], re.MULTILINE) == HEADINGS
    assert f"Severity: {load_rules()[name].severity}" in SECTIONS[name]
    [block] = re.findall(r"```yaml\n(.*?)```", SECTIONS[name], re.DOTALL)
    example = yaml.safe_load(block)
    found = lint_systems([make_system(example["system"])], [facts()], engine=example.get("engine"))
    assert name in {item.id for item in found}
