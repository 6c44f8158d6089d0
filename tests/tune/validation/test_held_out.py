"""A search is judged on queries that it never saw, by rules that hold on the record."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fusion_bench.data.grouped_rows import factorize
from fusion_bench.data.records import Qrels
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.report_records import Provenance
from fusion_bench.experiment.tune_settings import Crag, Tuning
from fusion_bench.io import Dataset
from fusion_bench.io.dataset import DatasetSpec
from fusion_bench.report.tuning import TuningReport
from fusion_bench.tune.search.search import Study, search
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import Problem
from fusion_bench.tune.validation import cross_validation as procedure
from fusion_bench.tune.validation.cross_validation import choose, cross_validate, values_of
from fusion_bench.tune.validation.held_out import Judge
from fusion_bench.tune.validation.nested_cv import Nested
from fusion_bench.tune.validation.splits import BoolArray, Split, hashed_split
from fusion_bench.tune.validation.trial_selection import sceptical_gains
from fusion_bench.tune.validation.verdict import gain
from tests.tune.cases import aligned
from tests.tune.problems import problem, system

ORIGIN = Provenance(created="now", source="e.yaml", source_sha256="0", versions={}, v2_enabled=True)
TUNING = Tuning(system="tuned", trials=24, folds=3, sampler="random")


@pytest.fixture(scope="module")
def base() -> Problem:
    types = ["ab"[q % 2] for q in range(80)]
    groups = [f"g{q // 2}" for q in range(80)]
    return problem(runs=aligned(80, types=types, groups=groups))


@pytest.fixture(scope="module")
def split(base: Problem) -> Split:
    return hashed_split(base.runs.groups, base.runs.types, salt="s")


@pytest.fixture(scope="module")
def study(base: Problem, split: Split) -> Study:
    return search(base, split.tune, TUNING.settings())


@pytest.fixture(scope="module")
def cross(base: Problem, split: Split) -> Nested[Trial] | None:
    return cross_validate(base, split, TUNING, lambda keep: search(base, keep, TUNING.settings()))


def dataset(base: Problem) -> Dataset:
    runs = base.runs
    pairs = [
        (runs.queries[q], runs.vocabulary[runs.documents[i]], int(runs.grades[i]))
        for i, q in enumerate(runs.query_index)
    ]
    spec = DatasetSpec.model_validate(
        {"name": "made-up", "qrels": "q", "runs": {"good": {"path": "g"}}}
    )
    return Dataset(spec, Qrels.from_rows(*map(list, zip(*pairs, strict=True))), {}, {}, {})


def reported(
    base: Problem, split: Split, study: Study, cross: Nested[Trial] | None, tuning: Tuning = TUNING
) -> TuningReport:
    judge = Judge(base, split, tuning)
    chosen = judge.choose(study)
    return judge.report(study, chosen, cross, name="e", dataset=dataset(base), provenance=ORIGIN)


@pytest.fixture(scope="module")
def report(base: Problem, split: Split, study: Study, cross: Nested[Trial] | None) -> TuningReport:
    return reported(base, split, study, cross)


def test_the_record_is_what_the_values_say(
    base: Problem, split: Split, study: Study, report: TuningReport
) -> None:
    default, tuned = base.values([base.default, study.best.params])
    assert report.choice.trial == study.best.number
    assert report.tune.tuned == pytest.approx(study.best.value)
    held_out = split.held_out
    assert report.held_out.difference == pytest.approx((tuned - default)[held_out].mean())
    pairs = list(zip(default[held_out].tolist(), tuned[held_out].tolist(), strict=True))
    assert list(report.held_out_values) == pairs
    assert report.held_out.groups < report.held_out.queries
    assert report.verdict == Judge(base, split, TUNING).verdict(report.held_out)


def test_the_numbers_never_depend_on_held_out_judgements(
    base: Problem, split: Split, study: Study
) -> None:
    swapped = base.runs.grades.copy()
    rows = np.flatnonzero(split.held_out[base.runs.query_index])
    swapped[rows] = swapped[rows][::-1]
    other = replace(base, runs=replace(base.runs, grades=swapped, _memo={}))
    again = search(other, split.tune, TUNING.settings())
    assert [t.params for t in again.trials] == [t.params for t in study.trials]
    assert again.best == study.best


def test_types_and_groups_are_judged_by_group(
    base: Problem, split: Split, study: Study, report: TuningReport
) -> None:
    assert [one.type for one in report.by_type] == ["a", "b"]
    default, tuned = base.values([base.default, study.best.params])
    mask = split.held_out & np.array([t == "a" for t in base.runs.types])
    codes = np.unique(np.array(base.runs.groups)[mask], return_inverse=True)[1]
    expected = gain(tuned[mask], default[mask], codes)
    assert report.by_type[0].gain.low == pytest.approx(expected.low)
    assert sum(one.gain.queries for one in report.by_type) == report.held_out.queries


def test_cross_validation_stays_within_the_tuning_queries(
    split: Split, cross: Nested[Trial] | None, report: TuningReport
) -> None:
    assert cross is not None
    assert ((cross.fold >= 0) == split.tune).all()
    assert np.isfinite(cross.values[split.tune]).all()
    assert len(report.folds) == 3
    assert sum(fold.queries for fold in report.folds) == split.tune.sum()
    assert report.nested is not None
    unseen = sum(fold.unseen * fold.queries for fold in report.folds) / split.tune.sum()
    assert report.nested.difference == pytest.approx(unseen)


def test_no_folds_no_estimate(base: Problem, split: Split, study: Study) -> None:
    none = TUNING.model_copy(update={"folds": 0})
    assert cross_validate(base, split, none, lambda _: study) is None
    found = reported(base, split, study, None, none)
    assert found.nested is None
    assert found.folds == ()


def test_a_search_that_finds_nothing_keeps_the_default(base: Problem, split: Split) -> None:
    default = Trial(
        0, base.default, float(base.values([base.default])[0][split.tune].mean()), "default"
    )
    found = reported(base, split, Study((default,)), None)
    assert found.verdict == "keep"
    assert (found.held_out.wins, found.held_out.losses) == (0, 0)
    assert found.shrinkage is None
    assert found.needed is None
    assert found.importances == ()


def test_the_one_standard_error_rule_stays_near_the_default(
    base: Problem, split: Split, study: Study
) -> None:
    near = choose(base, study, split.tune, "one_standard_error")
    part = base.restricted(split.tune)
    places = part.points([part.default, study.best.params, near.params])
    far = np.linalg.norm(places - places[0], axis=1)
    assert far[2] <= far[1]
    assert near.value <= study.best.value
    chosen = reported(
        base, split, study, None, TUNING.model_copy(update={"choose": "one_standard_error"})
    )
    assert chosen.choice.rule == "one_standard_error"
    assert chosen.choice.trial == near.number


@pytest.mark.parametrize("batch", [1, 3, 32])  # small ones stop before the worst trials
def test_the_sceptic_takes_what_is_best_after_ten_imagined_losses(
    base: Problem, split: Split, study: Study, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(procedure, "BATCH", batch)
    failed = Trial(len(study.trials), {"fusion.weights.good": 0.0}, math.nan, "sampler")
    with_failed = Study((*study.trials, failed))
    part = base.restricted(split.tune)
    codes = factorize(part.runs.groups)[0]
    values = part.values([trial.params for trial in study.trials])
    believed = sceptical_gains(values, values[0], codes).tolist()
    expected = max(range(len(believed)), key=lambda t: believed[t])
    assert believed[expected] > 0
    assert choose(base, with_failed, split.tune, "sceptical") == study.trials[expected]
    assert reported(base, split, with_failed, None).choice.trial == expected


def test_the_default_stays_where_no_gain_outweighs_the_losses(
    base: Problem, split: Split, study: Study
) -> None:
    few = split.tune.copy()
    few[np.flatnonzero(few)[6:]] = False
    part = base.restricted(few)
    values = part.values([trial.params for trial in study.trials]).mean(axis=1).tolist()
    told = [replace(t, value=value) for t, value in zip(study.trials, values, strict=True)]
    seen = Study(tuple(told))
    assert seen.best.value > seen.default.value, "some trial is luckier"
    assert choose(base, seen, few, "sceptical") == seen.default
    assert choose(base, seen, few, "best") == seen.best


def test_judged_only_is_silent_where_nothing_is_judged_bad(
    base: Problem, split: Split, study: Study, report: TuningReport
) -> None:
    assert report.judged_only is not None
    assert report.judged_only == pytest.approx(report.held_out.difference), "all is judged here"
    runs = replace(base.runs, judged=base.runs.grades > 0, _memo={})
    sparse = reported(replace(base, runs=runs), split, study, None)
    assert sparse.judged_only is None


def test_one_type_has_no_rows_of_its_own(study: Study, split: Split, base: Problem) -> None:
    plain = replace(base, runs=replace(base.runs, types=(None,) * 80, _memo={}))
    assert reported(plain, split, study, None).by_type == ()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"folds": 41}, "folds: must be at least 2 and at most the number of groups"),
        ({"crag": Crag()}, "crag: needs a system with a rerank list of score space"),
    ],
)
def test_what_could_not_be_judged_is_refused_before_the_search(
    base: Problem, split: Split, changed: dict[str, object], message: str
) -> None:
    Judge(base, split, TUNING).check()
    with pytest.raises(ConfigError, match=message):
        Judge(base, split, TUNING.model_copy(update=changed)).check()


def test_thresholds_read_the_rerank_list_though_the_search_switched_it_off() -> None:
    reranked = system(blend={"method": "linear", "reranker": "sharp"})
    ranges = {"blend.method": {"choices": ["linear", "none"]}}
    runs = aligned(40)
    on = replace(problem(reranked, ranges, runs=runs), spaces={"sharp": "logit"})
    parts = hashed_split(runs.groups, runs.types, salt="s")
    off = Trial(1, {"blend.method": "none"}, 2.0, "sampler")
    default = Trial(0, on.default, 1.0, "default")
    asked = TUNING.model_copy(update={"crag": Crag(top=3), "choose": "best"})
    found = reported(on, parts, Study((default, off)), None, asked)
    assert found.choice.config["blend"]["method"] == "none"
    assert found.thresholds is not None
    assert found.thresholds.top == 3


def test_values_in_batches_are_the_same(base: Problem, study: Study) -> None:
    params = [trial.params for trial in study.trials] * 2
    whole = base.values(params)
    assert (values_of(base, params) == whole).all()


def test_what_chooses_sees_a_mask_of_tuning_queries_only(base: Problem, split: Split) -> None:
    seen: list[BoolArray] = []

    def spy(keep: BoolArray) -> Study:
        seen.append(keep)
        return search(base, keep, TUNING.settings().model_copy(update={"trials": 2}))

    cross_validate(base, split, TUNING, spy)
    assert len(seen) == 3
    for keep in seen:
        assert not (keep & split.held_out).any()
        groups = np.array(base.runs.groups)
        assert not set(groups[keep]) & set(groups[split.tune & ~keep])


def test_a_fold_that_kept_the_default_agrees_with_one_that_found_its_ratio(split: Split) -> None:
    twice = system({"method": "rrf", "weights": {"good": 2.0, "bad": 2.0}})
    one = problem(twice, {"fusion.weights": "own"}, runs=aligned(80))
    half = dict.fromkeys(one.default, 1.0)
    value = float(one.values([half])[0].mean())
    trials = (Trial(0, one.default, value, "default"), Trial(1, half, value, "sampler"))
    fold = np.where(split.tune, np.cumsum(split.tune) % 2, -1)
    values = np.where(split.tune, one.values([half])[0], np.nan)
    found = reported(one, split, Study(trials), Nested(trials, fold, values))
    assert [each.params for each in found.folds] == [half, half]
    assert found.choice.params == one.default, "as the user wrote it"
    assert all(parameter.ratio for parameter in found.parameters)
