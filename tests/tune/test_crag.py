"""CRAG's thresholds: exact against every pair, and judged held out."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.query_splits import QuerySplit, hashed_split
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.crag import (
    CragThresholds,
    ListEvidence,
    absolute_rerankers,
    require_absolute,
    system_evidence,
)
from fusion_bench.experiment.settings import CragFitSettings, CragRule, TuneSettings
from fusion_bench.ranking.system_ranking import rank_candidates
from fusion_bench.stats.values import Pair
from fusion_bench.tune.crag import (
    assess_thresholds,
    calibration_bins,
    fit_lists,
    fit_thresholds,
    threshold_utility,
)
from fusion_bench.tune.held_out import HeldOutEvaluation
from fusion_bench.tune.objective import TuningObjective
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, problem, system

SCORES = np.array([0.9, 0.7, 0.5, 0.3, 0.1, math.nan])
TRUTH = np.array([True, True, False, True, False, False])


def test_verdicts_against_the_truth() -> None:
    rule = assess_thresholds(SCORES, TRUTH, CragThresholds(), 0.75)
    assert (rule.correct, rule.ambiguous, rule.incorrect) == ((2, 0), (0, 1), (1, 2))
    worth = threshold_utility(SCORES, TRUTH, CragThresholds(), 0.75)
    assert worth.tolist() == [1, 1, 0.75, 0, 1, 1]
    assert threshold_utility(SCORES, TRUTH, CragThresholds(0.6, 0.4), 0.75)[3] == 0, (
        "relevant, called incorrect"
    )
    assert threshold_utility(SCORES, ~TRUTH, CragThresholds(), 0.75)[0] == 0, (
        "not relevant, called correct"
    )


@given(
    rows=st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=14),
    credit=st.sampled_from([0.5, 0.6, 0.75, 0.9]),
)
def test_no_pair_of_thresholds_is_better(rows: list[tuple[int, bool]], credit: float) -> None:
    scores = np.array([score / 8 for score, _ in rows])
    truth = np.array([relevant for _, relevant in rows])
    found = threshold_utility(
        scores, truth, fit_thresholds(scores, truth, credit=credit), credit
    ).sum()
    places = [-0.01, *(np.arange(9) / 8 + 1e-3), 1.01]
    every = [
        threshold_utility(scores, truth, CragThresholds(upper, lower), credit).sum()
        for lower, upper in itertools.combinations_with_replacement(places, 2)
    ]
    assert found == pytest.approx(max(every))


@pytest.mark.parametrize("low", [0.0, 0.3, 1 / 3, 0.7])
@pytest.mark.parametrize("truth", list(itertools.product([False, True], repeat=3)))
def test_scores_next_to_each_other_are_told_apart(low: float, truth: tuple[bool, ...]) -> None:
    scores = np.array([low, np.nextafter(low, 1), np.nextafter(np.nextafter(low, 1), 1)])
    relevant = np.array(truth)
    for credit in (0.5, 0.75):
        found = fit_thresholds(scores, relevant, credit=credit)
        best = max(
            sum(credit if i <= row < j else float(relevant[row] == (row >= j)) for row in range(3))
            for i, j in itertools.combinations_with_replacement(range(4), 2)
        )
        assert threshold_utility(scores, relevant, found, credit).sum() == best


def test_no_score_at_all() -> None:
    nothing = np.array([math.nan, math.nan])
    assert fit_thresholds(nothing, np.array([True, False])) == CragThresholds(0.0, 0.0)
    assert calibration_bins(nothing, np.array([True, False])) == ()


def test_calibration_bins_hold_equally_many() -> None:
    rng = np.random.default_rng(2)
    scores = rng.random(1003)
    truth = rng.random(1003) < scores
    bins = calibration_bins(scores, truth)
    assert sum(one.queries for one in bins) == 1003
    assert max(one.queries for one in bins) - min(one.queries for one in bins) <= 1
    assert [one.score for one in bins] == sorted(one.score for one in bins)
    assert max(abs(one.score - one.share) for one in bins) < 0.15


RERANKED = system(blend=BLEND)
TUNING = TuneSettings(system="tuned")


@pytest.fixture(scope="module")
def base() -> TuningObjective:
    """Logits that tell relevant documents; half the queries have none."""
    runs = aligned(200)
    empty = np.arange(200) % 2 == 0
    grades = np.where(empty[runs.query_index], 0, runs.grades)
    rng = np.random.default_rng(0)
    logits: FloatArray = 4.0 * (grades > 0) - 3.0 + rng.normal(size=len(grades))
    runs = replace(runs, grades=grades, rerank=logits[None], spaces={"sharp": "logit"})
    return problem(RERANKED, runs=runs)


@pytest.fixture(scope="module")
def split(base: TuningObjective) -> QuerySplit:
    return hashed_split(base.runs.groups, base.runs.types, split_seed="s")


def evidence_of(base: TuningObjective, **rule: int) -> ListEvidence:
    found = system_evidence(RERANKED, base.runs, CragRule.model_validate(rule))
    assert found is not None
    return found


def test_scores_and_truth_by_the_slow_obvious_way(base: TuningObjective) -> None:
    evidence = evidence_of(base, top=3)
    scores, relevant = evidence.scores, evidence.relevant
    assert (evidence.name, evidence.kind, evidence.reranker) == (RERANKED.name, "system", "sharp")
    ranking = rank_candidates(RERANKED, base.runs)
    for q in range(0, 200, 17):
        rows = [
            n
            for n in range(ranking.runs.offsets[q], ranking.runs.offsets[q + 1])
            if 1 <= ranking.positions[n] <= 3
        ]
        assert len(rows) == 3
        best = max(1 / (1 + np.exp(-ranking.runs.rerank[0, n])) for n in rows)
        assert scores[q] == pytest.approx(best)
        assert relevant[q] == any(ranking.runs.grades[n] > 0 for n in rows)


def test_thresholds_are_fitted_on_tuning_queries_and_judged_on_the_others(
    base: TuningObjective, split: QuerySplit
) -> None:
    crag = CragFitSettings(upper=0.95, lower=0.9)
    evidence = evidence_of(base)
    [fitted_list] = fit_lists([evidence], split, crag)
    utilities = fitted_list.utilities(fitted_list.tuned), fitted_list.utilities(fitted_list.default)
    evaluation = HeldOutEvaluation(base, split, TUNING)
    groups = evaluation.list_groups(split.held_out)
    [gain] = evaluation.estimate_family([Pair.from_arrays(*utilities, groups)])
    found = fitted_list.to_report(gain, evaluation.decide_verdict(gain))
    scores, relevant = evidence.scores, evidence.relevant
    fitted = fit_thresholds(scores[split.tune], relevant[split.tune], credit=0.75)
    assert (found.tuned.upper, found.tuned.lower) == (fitted.upper, fitted.lower)
    held = split.held_out
    for rule, at in ((found.tuned, fitted), (found.default, CragThresholds(0.95, 0.9))):
        worth = threshold_utility(scores[held], relevant[held], at, 0.75)
        assert rule.utility == pytest.approx(worth.mean())
        counted = (*rule.correct, *rule.ambiguous, *rule.incorrect)
        assert sum(counted) == held.sum()
    assert found.gain.difference == pytest.approx(found.tuned.utility - found.default.utility)
    assert found.verdict == "ship", "0.95 and 0.9 are far off these scores"
    assert found.min_score.upper == found.min_score.lower
    assert sum(one.queries for one in found.calibration) == held.sum()


@pytest.mark.parametrize("space", ["unbounded", "order"])
def test_scores_that_mean_something_within_a_query_only_are_refused(
    base: TuningObjective, space: ScoreSpace
) -> None:
    assert (
        system_evidence(RERANKED, replace(base.runs, spaces={"sharp": space}), CragRule()) is None
    )
    assert absolute_rerankers({"sharp": space, "a": "log_prob"}) == ["a"]
    with pytest.raises(ConfigError, match=f"crag: d .*'sharp' is {space}"):
        require_absolute("d", {"sharp": space})
    with pytest.raises(ConfigError, match="no rerank list"):
        require_absolute("d", {})
