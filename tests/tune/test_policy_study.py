"""The worth of policies: out of fold, against tuned fixed numbers."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.checks.unjudged import UnjudgedEvidence
from fusion_bench.cli import main
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.methods.policies import Variant
from fusion_bench.methods.policies.regression import Regression
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.report.policy_page import PolicyResult, PolicyStudy, build_policy_page
from fusion_bench.stats.comparison import JudgmentKind
from fusion_bench.tune.policy_study import (
    PreparedPolicy,
    StudyBudget,
    best_of_other_folds,
    compare_policy,
    decide_policy,
    list_policies,
    pick_fixed,
    rule_chooser,
    shuffled_orders,
    study_policy,
    trained_chooser,
)
from tests import diagnose_cases as cases
from tests.shipped_schemas import check_record
from tests.tiny import edit

RR = parse_measure("RR@10")
BUDGET = StudyBudget(trials=12, folds=3, shufflings=39)


def make_collection(
    *, is_told: bool, queries: int = 60, rerankers: Sequence[Run] = ()
) -> tuple[AlignedRuns, Qrels]:
    """Where ``is_told``, the keyword list is right exactly where its first score stands out."""
    random = Random(4)
    keyword, semantic, judged = {}, {}, {}
    for q in range(queries):
        name, is_keyword = f"q{q:02}", random.random() < 0.5
        is_sharp = is_keyword if is_told else random.random() < 0.5
        flat = {f"k{i}": 5.0 + 0.01 * (5 - i) for i in range(6)}
        keyword[name] = {**flat, "k0": 60.0} if is_sharp else flat
        semantic[name] = {f"s{i}": 0.9 - 0.01 * i for i in range(6)}
        judged[name] = {"k0" if is_keyword else "s0": 1}
    qrels = Qrels.from_dict(judged)
    runs = [
        Run.from_dict("bm25", keyword, roles=frozenset({"keyword"})),
        Run.from_dict("dense", semantic, roles=frozenset({"semantic"})),
    ]
    return align(qrels, runs, rerankers=rerankers, spaces={"ce": "unit"}), qrels


def study(runs: AlignedRuns, qrels: Qrels, **policy: Any) -> PolicyResult:  # noqa: ANN401 - as YAML
    system = System("s", ["bm25", "dense"], policy=policy)
    return study_policy(system, runs, RR, qrels=qrels, collection="c", budget=BUDGET)


@pytest.mark.parametrize("policy", ["entropy_alpha", "regression"])
def test_what_the_scores_tell_pays_and_noise_does_not(policy: str) -> None:
    told = study(*make_collection(is_told=True), method=policy, **options(policy))
    assert told.verdict == "pays"
    assert told.low > 0
    assert told.null_p == 1 / 40
    assert told.tuned <= told.oracle == 1.0
    noise = study(*make_collection(is_told=False), method=policy, **options(policy))
    assert noise.verdict == "no gain shown"
    assert noise.shuffled_pays <= 3


def options(policy: str) -> dict[str, Any]:
    return {"measure": "RR@10"} if policy == "regression" else {}


def test_means_are_those_of_the_systems() -> None:
    runs, qrels = make_collection(is_told=True)
    result = study(runs, qrels, method="entropy_alpha")
    systems = [System("s", ["bm25", "dense"], policy=policy) for policy in (None, "entropy_alpha")]
    default, configured = evaluate_systems(systems, runs, [RR])
    assert result.default == pytest.approx(default.values.mean())
    assert result.configured == pytest.approx(configured.values.mean())
    assert result.difference == pytest.approx(result.tuned - result.fixed)
    assert (result.trials, result.queries, result.folds) == (12, 60, 3)
    assert result.fixed_trials <= 12


@pytest.mark.parametrize(
    ("judgments", "filled", "verdict"),
    [
        ("pooled", -0.6, "unjudged decide"),
        ("pooled", 0.6, "pays"),
        ("sparse", -0.6, "pays"),
        ("complete", -0.6, "pays"),
    ],
)
def test_unjudged_documents_decide_where_they_contradict_that_it_pays(
    judgments: JudgmentKind, filled: float, verdict: str
) -> None:
    right = np.arange(60) % 2
    values = np.where(np.arange(2)[:, None] == right, 1.0, 0.2 + np.arange(60) / 1000)

    def choose(order: IntArray) -> tuple[FloatArray, IntArray]:
        codes = right[order]
        return values[codes, np.arange(60)], codes

    def measure_unjudged(codes: IntArray) -> UnjudgedEvidence:
        of_policy = filled if len(set(codes.tolist())) == 2 else 0.0
        return UnjudgedEvidence(np.zeros(60), values[0], np.full(60, of_policy))

    prepared = PreparedPolicy(
        choose, (Variant(), Variant()), values, 2, None, measure_unjudged, judgments
    )
    names = ("c", "s", "entropy_alpha", "RR@10")
    result = compare_policy(prepared, np.arange(60) // 2 % 3, np.arange(60), BUDGET, names)
    assert result.verdict == verdict
    assert (result.unjudged is None) == (judgments == "complete")


def test_an_interval_stays_within_the_bounds_of_the_measure() -> None:
    result = study(*make_collection(is_told=True, queries=6), method="entropy_alpha")
    assert -1 <= result.low <= result.high <= 1


@pytest.mark.parametrize(
    ("low", "p", "verdict"),
    [
        (0.001, 0.005, "pays"),
        (0.001, 0.025, "pays"),
        (0.001, 0.026, "no gain shown"),
        (0.0, 0.005, "no gain shown"),
        (-0.001, 0.005, "no gain shown"),
        (float("nan"), 0.005, "no gain shown"),
        (0.001, float("nan"), "no gain shown"),
    ],
)
def test_the_rule(low: float, p: float, verdict: str) -> None:
    assert decide_policy(low, p) == verdict


def test_the_first_trial_is_the_configured_policy_and_the_budget_holds() -> None:
    system = System("s", ["bm25", "dense"], policy={"method": "margin_silencing", "floor": 0.3})
    assert system.policy is not None
    tried = list_policies(system.policy, system.runs, 10, seed=1)
    assert len(tried) == 10
    assert tried[0] == system.policy
    assert tried == list_policies(system.policy, system.runs, 10, seed=1)
    assert tried != list_policies(system.policy, system.runs, 10, seed=2)


@pytest.mark.parametrize(("variants", "trials"), [(3, 50), (101, 50), (2, 2)])
def test_fixed_variants_are_spread_and_hold_the_default(variants: int, trials: int) -> None:
    index = pick_fixed(variants, trials)
    assert len(index) == min(variants, trials)
    assert {0, variants - 1} <= {*index.tolist()}


def test_a_system_without_a_policy_is_refused() -> None:
    runs, qrels = make_collection(is_told=True, queries=6)
    with pytest.raises(ConfigError, match="'s' has no policy"):
        study_policy(System("s", ["bm25"]), runs, RR, qrels=qrels)


def test_a_variant_without_a_reranker_counts_as_not_reranked() -> None:
    scores = {f"q{q:02}": {"k0": 0.9, "s0": 0.1} for q in range(60)}
    runs, qrels = make_collection(is_told=True, rerankers=[Run.from_dict("ce", scores)])
    policy = {"method": "overlap_rules", "below": {"rerank": False}, "above": {}}
    blend = {"method": "replace", "reranker": "ce", "missing": "below"}
    system = System("s", ["bm25", "dense"], blend=blend, policy=policy)
    result = study_policy(system, runs, RR, qrels=qrels, collection="c", budget=BUDGET)
    assert result.reranked == 0.0  # the lists share nothing


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(cases.make_project(tmp_path))
    edit(
        tmp_path,
        cases.EXPERIMENT,
        "  keyword: {runs: [bm25]}\n",
        "  keyword: {runs: [bm25]}\n  rules: {runs: [dense, bm25], policy: {method: overlap_rules, "
        "threshold: 0.9, below: {weights: {question: 3}}}}\n",
    )
    return tmp_path


def test_the_command_writes_what_it_prints(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["policies", cases.EXPERIMENT, "--folds", "2", "--shufflings", "39", "--trials", "5"]
    assert main([*given, "--json"]) == 0
    text = capsys.readouterr().out
    check_record("policies", text)
    folder = project / "reports/mine"
    assert json.loads((folder / "policies.json").read_text(encoding="utf-8")) == json.loads(text)
    record = PolicyStudy.model_validate_json(text)
    [result] = record.results
    assert (result.system, result.collection, result.shufflings) == ("rules", "mine", 39)
    warnings, _ = build_policy_page(record).sections
    assert {each.key for each in warnings.findings} >= {"unanswered", "near-duplicate queries"}
    assert main(given) == 0
    assert "rules" in capsys.readouterr().out
    assert (folder / "policies.md").read_text(encoding="utf-8").startswith("# Policies: mine")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--system", "plain"], "unknown system with a policy 'plain' (known: rules)"),
        (["--folds", "9"], "at most the number of groups"),
        (["--set", "systems.rules.policy=overlap_rulez"], "overlap_rulez"),
    ],
)
def test_the_command_refuses(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert (project / cases.EXPERIMENT).exists()
    assert main(["policies", cases.EXPERIMENT, *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@given(st.integers(0, 10**6))
def test_rules_are_chosen_as_by_the_slow_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trials, variants, queries, folds = 4, 3, 13, 3
    codes = rng.integers(0, variants, (trials, queries))
    values = rng.integers(0, 9, (variants, queries)) / 8
    fold = np.concatenate([np.arange(folds), rng.integers(0, folds, queries - folds)])
    order = rng.permutation(queries)
    chosen, picked = rule_chooser(codes, values, fold)(order)
    for q in range(queries):
        means = [
            np.mean([values[codes[t, order[p]], p] for p in range(queries) if fold[p] != fold[q]])
            for t in range(trials)
        ]
        best = [t for t in range(trials) if means[t] >= max(means) - 1e-12]
        assert picked[q] in codes[best, order[q]]
        assert chosen[q] == values[picked[q], q]


def test_no_fold_has_a_say_in_what_it_gets() -> None:
    rng = np.random.default_rng(3)
    values, fold = rng.random((5, 20)), np.arange(20) % 4
    best = best_of_other_folds(values, fold)
    for k in range(4):
        changed = np.where(fold == k, rng.random((5, 20)), values)
        assert best_of_other_folds(changed, fold)[fold == k].tolist() == best[fold == k].tolist()


def test_a_trained_policy_learns_nothing_from_the_fold_that_it_is_valued_on() -> None:
    rng = np.random.default_rng(5)
    matrix, values, fold = rng.normal(size=(30, 3)), rng.random((4, 30)), np.arange(30) % 3
    candidates = [Regression(ridge=ridge) for ridge in (0.1, 10.0)]
    order = np.arange(30)
    _, codes = trained_chooser(candidates, matrix, values, values, fold)(order)
    for k in range(3):
        changed = np.where(fold == k, rng.random((4, 30)), values)
        _, again = trained_chooser(candidates, matrix, changed, changed, fold)(order)
        assert again[fold == k].tolist() == codes[fold == k].tolist()


def test_a_trained_policy_finds_what_a_feature_tells() -> None:
    rng = np.random.default_rng(7)
    sign = rng.choice([-1.0, 1.0], 60)
    values = np.stack([sign > 0, sign < 0]).astype(float)
    matrix = np.stack([sign, rng.normal(size=60)], axis=1)
    choose = trained_chooser([Regression()], matrix, values, values, np.arange(60) % 5)
    chosen, _ = choose(np.arange(60))
    assert chosen.mean() == 1.0
    shuffled, _ = choose(next(iter(shuffled_orders(60, 1, 0))))
    assert shuffled.mean() < 0.8


def test_shufflings_are_permutations_and_the_same_every_time() -> None:
    orders = list(shuffled_orders(11, 4, seed=2))
    assert [sorted(order.tolist()) for order in orders] == [list(range(11))] * 4
    assert len({tuple(order.tolist()) for order in orders}) == 4
    again = list(shuffled_orders(11, 4, seed=2))
    assert all((a == b).all() for a, b in zip(orders, again, strict=True))
    assert orders[0].tolist() != next(iter(shuffled_orders(11, 1, seed=3))).tolist()


def test_of_equal_means_the_first_is_chosen() -> None:
    values = np.array([[0.0, 1.0, 0.0, 1.0], [0.5, 0.5, 0.5, 0.5]])
    assert best_of_other_folds(values, np.array([0, 0, 1, 1])).tolist() == [0, 0, 0, 0]
