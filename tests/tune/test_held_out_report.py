"""A search is judged on queries that it never saw, by rules that hold on the record."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import BoolArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.query_splits import QuerySplit, hashed_split
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.recommendation import Effort
from fusion_bench.evaluation.report_file import Provenance
from fusion_bench.experiment.settings import CragFitSettings, TuneSettings
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.dataset_config import DatasetSpec
from fusion_bench.report.tuning_records import TuningReport, TuningVerdict
from fusion_bench.stats.values import Pair
from fusion_bench.tune.held_out import (
    HeldOutEvaluation,
    UntunedSystem,
    estimate_family,
    shown_direction,
)
from fusion_bench.tune.held_out_report import HeldOutGains, HeldOutReport, SearchOutcome
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import SearchResult, Trial, run_search
from fusion_bench.tune.trial_selection import (
    CrossValidation,
    choose_trial,
    cross_validate,
    shrunken_gains,
)
from fusion_bench.tune.tuning_run import tune_by_class
from tests.tune.cases import aligned
from tests.tune.problems import problem, system

ORIGIN = Provenance(created="now", source="e.yaml", source_sha256="0", versions={}, v2_enabled=True)
TUNING = TuneSettings(system="tuned", trials=24, folds=3, sampler="random")


@pytest.fixture(scope="module")
def base() -> TuningObjective:
    types = ["ab"[q % 2] for q in range(80)]
    groups = [f"g{q // 2}" for q in range(80)]
    return problem(runs=aligned(80, types=types, groups=groups))


@pytest.fixture(scope="module")
def split(base: TuningObjective) -> QuerySplit:
    return hashed_split(base.runs.groups, base.runs.types, split_seed="s")


@pytest.fixture(scope="module")
def study(base: TuningObjective, split: QuerySplit) -> SearchResult:
    return run_search(base, split.tune, TUNING.search_settings())


@pytest.fixture(scope="module")
def cross(base: TuningObjective, split: QuerySplit) -> CrossValidation | None:
    return cross_validate(
        base, split, TUNING, lambda keep, _: run_search(base, keep, TUNING.search_settings())
    )


def dataset(base: TuningObjective) -> Dataset:
    runs = base.runs
    pairs = [
        (runs.queries[q], runs.vocabulary[runs.documents[i]], int(runs.grades[i]))
        for i, q in enumerate(runs.query_index)
        if runs.judged[i]
    ]
    spec = DatasetSpec.model_validate(
        {"name": "made-up", "qrels": "q", "runs": {"good": {"path": "g"}}}
    )
    return Dataset(spec, Qrels.from_rows(*map(list, zip(*pairs, strict=True))), {}, {}, {})


def reported(
    base: TuningObjective,
    split: QuerySplit,
    study: SearchResult,
    cross: CrossValidation | None,
    tuning: TuneSettings = TUNING,
    untuned: Sequence[UntunedSystem] = (),
) -> TuningReport:
    judge = HeldOutEvaluation(base, split, tuning)
    chosen = choose_trial(base, study, split.tune, tuning.choose)
    outcome = SearchOutcome(study, chosen, cross)
    compared = HeldOutReport(judge, outcome, dataset(base), untuned=untuned)
    return compared.make_record("e", ORIGIN)


@pytest.fixture(scope="module")
def report(
    base: TuningObjective,
    split: QuerySplit,
    study: SearchResult,
    cross: CrossValidation | None,
) -> TuningReport:
    return reported(base, split, study, cross)


def test_what_is_not_shown_to_be_worse_held_out_is_in_the_first_group(
    base: TuningObjective, split: QuerySplit, study: SearchResult, report: TuningReport
) -> None:
    assert report.first_group == ()
    [default] = base.evaluate_params([base.default_params])
    nothing = UntunedSystem(name="nothing", kind="source", values=np.zeros(len(default)))
    twin = UntunedSystem(name="twin", kind="system", values=default)
    compared = reported(base, split, study, None, untuned=[nothing, twin])
    assert [row.name for row in compared.floor][-1] == "nothing"
    assert "nothing" not in compared.first_group
    assert ("twin" in compared.first_group) == ("the default" in compared.first_group)
    assert "the tuned system" in compared.first_group
    best = reported(base, split, study, None, untuned=[replace(twin, values=default * 0 + 1)])
    assert best.first_group == ("twin",)


@pytest.fixture(scope="module")
def large() -> tuple[TuningObjective, QuerySplit, SearchResult]:
    """More queries, of which half show the gain."""
    base = problem(runs=aligned(240))
    split = hashed_split(base.runs.groups, base.runs.types, split_seed="s")
    return base, split, run_search(base, split.tune, TUNING.search_settings())


def test_an_untuned_system_of_the_best_group_is_recommended_before_a_tuned_one_that_ships(
    large: tuple[TuningObjective, QuerySplit, SearchResult],
) -> None:
    base, split, study = large
    report = reported(*large, None)
    assert report.verdict == "ship"
    assert report.advice.kind == "use tuned"
    assert report.advice.loss_share == report.held_out.loss_share
    _, tuned = base.evaluate_params([base.default_params, study.best_trial.params])
    noise = np.random.default_rng(3).normal(0, 0.01, len(tuned))
    two, one, bad = (
        UntunedSystem(
            name="two lists", kind="system", values=tuned + noise, effort=Effort(0, 2, 0)
        ),
        UntunedSystem(name="one list", kind="source", values=tuned - noise, effort=Effort(0, 1, 0)),
        UntunedSystem(
            name="nothing", kind="source", values=np.zeros(len(tuned)), effort=Effort(0, 0, 0)
        ),
    )
    found = reported(base, split, study, None, untuned=[two, one, bad])
    assert set(found.first_group) == {"the tuned system", "two lists", "one list"}
    assert found.verdict == "ship", "against the default alone"
    assert (found.advice.kind, found.advice.name) == ("use untuned", "one list")
    assert "fewest lists" in found.advice.sentence
    assert found.advice.loss_share is not None
    assert found.advice.loss_share < 0.05
    alone = reported(base, split, study, None, untuned=[bad])
    assert alone.advice.kind == "use tuned"
    [default] = base.evaluate_params([base.default_params])
    wild = np.random.default_rng(4).normal(0, 0.4, len(default))
    wild -= wild[split.held_out].mean() + 0.001
    unsure = UntunedSystem(
        name="unsure", kind="source", values=default + wild, effort=Effort(0, 0, 0)
    )
    found = reported(base, split, study, None, untuned=[unsure])
    assert "unsure" in found.first_group
    assert found.advice.kind == "use tuned", "its mean is below the default's"


def test_without_a_ship_only_what_is_better_than_the_default_is_recommended(
    base: TuningObjective, split: QuerySplit
) -> None:
    [default] = base.evaluate_params([base.default_params])
    value = float(default[split.tune].mean())
    nothing_found = SearchResult((Trial(0, base.default_params, value, "default"),))
    noise = np.random.default_rng(3).normal(0, 0.01, len(default))
    same = UntunedSystem(name="as good", kind="source", values=default + noise)
    found = reported(base, split, nothing_found, None, untuned=[same])
    assert "as good" in found.first_group
    assert (found.verdict, found.advice.kind) == ("keep", "keep default")
    better = UntunedSystem(name="better", kind="source", values=default + 0.2 + noise)
    found = reported(base, split, nothing_found, None, untuned=[same, better])
    assert found.verdict == "keep"
    assert (found.advice.kind, found.advice.name) == ("use untuned", "better")


def test_without_any_groups_nothing_ships(
    large: tuple[TuningObjective, QuerySplit, SearchResult],
) -> None:
    base, split, study = large
    judge = HeldOutEvaluation(base, split, TUNING, is_grouped=False)
    outcome = SearchOutcome(study, study.best_trial)
    found = HeldOutReport(judge, outcome, dataset(base)).make_record("e", ORIGIN)
    assert (found.verdict, found.advice.kind) == ("groups decide", "declare groups")


def test_the_record_is_what_the_values_say(
    base: TuningObjective, split: QuerySplit, study: SearchResult, report: TuningReport
) -> None:
    default, tuned = base.evaluate_params([base.default_params, study.best_trial.params])
    assert report.choice.trial == study.best_trial.number
    assert report.tune.tuned == pytest.approx(study.best_trial.value)
    held_out = split.held_out
    assert report.held_out.difference == pytest.approx((tuned - default)[held_out].mean())
    pairs = list(zip(default[held_out].tolist(), tuned[held_out].tolist(), strict=True))
    assert list(report.held_out_values) == pairs
    assert report.held_out.groups < report.held_out.queries
    assert report.verdict == HeldOutEvaluation(base, split, TUNING).decide_verdict(report.held_out)


def test_the_numbers_never_depend_on_held_out_judgements(
    base: TuningObjective, split: QuerySplit, study: SearchResult
) -> None:
    swapped = base.runs.grades.copy()
    rows = np.flatnonzero(split.held_out[base.runs.query_index])
    swapped[rows] = swapped[rows][::-1]
    other = replace(base, runs=replace(base.runs, grades=swapped))
    again = run_search(other, split.tune, TUNING.search_settings())
    assert [t.params for t in again.trials] == [t.params for t in study.trials]
    assert again.best_trial == study.best_trial


def test_types_and_groups_are_judged_by_group(
    base: TuningObjective, split: QuerySplit, study: SearchResult, report: TuningReport
) -> None:
    assert [one.type for one in report.by_type] == ["a", "b"]
    default, tuned = base.evaluate_params([base.default_params, study.best_trial.params])
    mask = split.held_out & np.array([t == "a" for t in base.runs.types])
    rows = [
        Pair.from_arrays(
            tuned[part], default[part], np.array(base.runs.groups)[part].tolist(), is_bounded=True
        )
        for part in (mask, split.held_out & ~mask)
    ]
    assert [one.gain for one in report.by_type] == estimate_family(rows, seed=TUNING.seed)
    assert sum(one.gain.queries for one in report.by_type) == report.held_out.queries


def test_cross_validation_stays_within_the_tuning_queries(
    split: QuerySplit, cross: CrossValidation | None, report: TuningReport
) -> None:
    assert cross is not None
    assert ((cross.fold >= 0) == split.tune).all()
    assert np.isfinite(cross.values[split.tune]).all()
    assert len(report.folds) == 3
    assert sum(fold.queries for fold in report.folds) == split.tune.sum()
    assert report.nested is not None
    unseen = sum(fold.unseen * fold.queries for fold in report.folds) / split.tune.sum()
    assert report.nested.difference == pytest.approx(unseen)


def test_a_search_that_finds_nothing_keeps_the_default(
    base: TuningObjective, split: QuerySplit
) -> None:
    default = Trial(
        0,
        base.default_params,
        float(base.evaluate_params([base.default_params])[0][split.tune].mean()),
        "default",
    )
    found = reported(base, split, SearchResult((default,)), None)
    assert found.verdict == "keep"
    assert (found.held_out.wins, found.held_out.losses) == (0, 0)
    assert found.optimism is None
    assert found.needed is None
    assert found.importances == ()


def test_the_one_standard_error_rule_stays_near_the_default(
    base: TuningObjective, split: QuerySplit, study: SearchResult
) -> None:
    near = choose_trial(base, study, split.tune, "one_standard_error")
    part = base.subset_queries(split.tune)
    places = part.unit_points([part.default_params, study.best_trial.params, near.params])
    far = np.linalg.norm(places - places[0], axis=1)
    assert far[2] <= far[1]
    assert near.value <= study.best_trial.value
    chosen = reported(
        base, split, study, None, TUNING.model_copy(update={"choose": "one_standard_error"})
    )
    assert chosen.choice.rule == "one_standard_error"
    assert chosen.choice.trial == near.number


@pytest.mark.parametrize("batch", [1, 3, 32])  # small ones stop before the worst trials
def test_the_greatest_gain_after_shrinkage_is_chosen(
    base: TuningObjective, split: QuerySplit, study: SearchResult, batch: int
) -> None:
    failed = Trial(len(study.trials), {"fusion.weights.good": 0.0}, math.nan, "sampler")
    with_failed = SearchResult((*study.trials, failed))
    part = base.subset_queries(split.tune)
    codes = number_by_appearance(part.runs.groups)[0]
    values = part.evaluate_params([trial.params for trial in study.trials])
    shrunken = shrunken_gains(values, values[0], codes).tolist()
    expected = max(range(len(shrunken)), key=lambda t: shrunken[t])
    assert shrunken[expected] > 0
    chosen = choose_trial(base, with_failed, split.tune, "shrinkage", batch)
    assert chosen == study.trials[expected]
    assert reported(base, split, with_failed, None).choice.trial == expected


def test_the_default_stays_where_no_gain_is_left_after_shrinkage(
    base: TuningObjective, split: QuerySplit, study: SearchResult
) -> None:
    few = split.tune.copy()
    few[np.flatnonzero(few)[6:]] = False
    part = base.subset_queries(few)
    values = part.evaluate_params([trial.params for trial in study.trials]).mean(axis=1).tolist()
    told = [replace(t, value=value) for t, value in zip(study.trials, values, strict=True)]
    seen = SearchResult(tuple(told))
    assert seen.best_trial.value > seen.default_trial.value, "some trial is luckier"
    assert choose_trial(base, seen, few, "shrinkage") == seen.default_trial
    assert choose_trial(base, seen, few, "best") == seen.best_trial


def test_unjudged_documents_are_looked_at_where_some_are_judged_not_relevant(
    base: TuningObjective, split: QuerySplit, study: SearchResult, report: TuningReport
) -> None:
    assert report.unjudged is not None
    assert not report.unjudged.has_unjudged
    assert report.unjudged.judged_only == pytest.approx(report.held_out.difference)
    assert report.unjudged.filled == pytest.approx(report.held_out.difference)
    runs = replace(base.runs, judged=base.runs.grades > 0)
    sparse = reported(replace(base, runs=runs), split, study, None).unjudged
    assert sparse is not None
    assert sparse.has_unjudged
    assert (sparse.judged_only, sparse.filled) == (None, None)


@pytest.mark.parametrize(
    ("verdict", "low", "direction"),
    [
        ("ship", 0.1, 1),
        ("worse", -0.2, -1),
        ("keep", 0.001, 1),
        ("keep", -0.001, None),
        ("too few queries", -0.1, None),
        ("too few tuning queries", -0.1, None),
    ],
)
def test_what_a_verdict_claims(
    report: TuningReport, verdict: TuningVerdict, low: float, direction: int | None
) -> None:
    gain = report.held_out.model_copy(update={"low": low})
    assert shown_direction(verdict, gain) == direction


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"folds": 41}, "folds: must be at least 2 and at most the number of groups"),
        ({"crag": CragFitSettings()}, "crag: the dataset has no rerank list of score space"),
    ],
)
def test_what_could_not_be_judged_is_refused_before_the_search(
    base: TuningObjective, split: QuerySplit, changed: dict[str, object], message: str
) -> None:
    HeldOutEvaluation(base, split, TUNING).check_feasible()
    with pytest.raises(ConfigError, match=message):
        HeldOutEvaluation(base, split, TUNING.model_copy(update=changed)).check_feasible()


def test_thresholds_read_the_rerank_list_though_the_search_switched_it_off() -> None:
    reranked = system(blend={"method": "linear", "reranker": "sharp"})
    ranges = {"blend.method": {"choices": ["linear", "none"]}}
    spaces: dict[str, ScoreSpace] = {"sharp": "logit"}
    runs = replace(aligned(40), spaces=spaces)
    on = problem(reranked, ranges, runs=runs)
    parts = hashed_split(runs.groups, runs.types, split_seed="s")
    off = Trial(1, {"blend.method": "none"}, 2.0, "sampler")
    default = Trial(0, on.default_params, 1.0, "default")
    asked = TUNING.model_copy(update={"crag": CragFitSettings(top=3), "choose": "best"})
    found = reported(on, parts, SearchResult((default, off)), None, asked)
    assert found.choice.config["blend"]["method"] == "none"
    assert [(each.name, each.kind, each.top) for each in found.thresholds] == [
        ("tuned", "system", 3)
    ]


def test_all_verdicts_of_a_run_are_one_family(
    base: TuningObjective, split: QuerySplit, study: SearchResult
) -> None:
    judge = HeldOutEvaluation(base, split, TUNING)
    chosen = study.best_trial

    def search(_: str, part: TuningObjective, keep: BoolArray) -> SearchResult:
        return run_search(part, keep, TUNING.search_settings())

    by_class = tune_by_class(judge, chosen, search)
    assert by_class is not None
    outcomes = [SearchOutcome(study, chosen), SearchOutcome(study, chosen, per_type=by_class)]
    families = [HeldOutGains(judge, outcome, dataset(base)).family for outcome in outcomes]
    (alone, none, _), (gain, over_global, others) = families
    assert (none, others) == (None, [])
    assert over_global is not None
    default, tuned = base.evaluate_params([base.default_params, chosen.params])
    rows = [(tuned, default), (by_class.values, by_class.overall)]
    assert [gain, over_global] == judge.estimate_family([judge.pair_values(*row) for row in rows])
    assert alone.p <= gain.p


def test_what_chooses_sees_a_mask_of_tuning_queries_only(
    base: TuningObjective, split: QuerySplit
) -> None:
    seen: list[BoolArray] = []

    def spy(keep: BoolArray, _: int) -> SearchResult:
        seen.append(keep)
        return run_search(base, keep, TUNING.search_settings().model_copy(update={"trials": 2}))

    cross_validate(base, split, TUNING, spy)
    assert len(seen) == 3
    for keep in seen:
        assert not (keep & split.held_out).any()
        groups = np.array(base.runs.groups)
        assert not set(groups[keep]) & set(groups[split.tune & ~keep])


def test_a_fold_that_kept_the_default_agrees_with_one_that_found_its_ratio(
    split: QuerySplit,
) -> None:
    twice = system({"method": "rrf", "weights": {"good": 2.0, "bad": 2.0}})
    one = problem(twice, {"fusion.weights": "own"}, runs=aligned(80))
    half = dict.fromkeys(one.default_params, 1.0)
    value = float(one.evaluate_params([half])[0].mean())
    trials = (Trial(0, one.default_params, value, "default"), Trial(1, half, value, "sampler"))
    fold = np.where(split.tune, np.cumsum(split.tune) % 2, -1)
    values = np.where(split.tune, one.evaluate_params([half])[0], np.nan)
    found = reported(one, split, SearchResult(trials), CrossValidation(trials, fold, values))
    assert [each.params for each in found.folds] == [half, half]
    assert found.choice.params == one.default_params, "as the user wrote it"
    assert all(parameter.ratio for parameter in found.parameters)
