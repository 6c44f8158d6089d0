"""Best scores of lists, and thresholds judged held out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fusion_bench.data.ordering import FloatArray
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
from fusion_bench.tune.crag import fit_lists, fit_thresholds, threshold_utility
from fusion_bench.tune.held_out import HeldOutEvaluation
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.splits import QuerySplit, hashed_split
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, problem, system

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


def test_the_grade_says_what_is_relevant(base: TuningObjective) -> None:
    assert evidence_of(base, top=3).relevant.any()
    assert not evidence_of(base, top=3, grade=2).relevant.any()


def test_thresholds_are_fitted_on_tuning_queries_and_judged_on_the_others(
    base: TuningObjective, split: QuerySplit
) -> None:
    crag = CragFitSettings(upper=0.95, lower=0.9)
    evidence = evidence_of(base)
    [fitted_list] = fit_lists([evidence], split, crag)
    utilities = fitted_list.utilities(fitted_list.tuned), fitted_list.utilities(fitted_list.default)
    evaluation = HeldOutEvaluation(base, split, TUNING)
    [gain] = evaluation.judge_family([utilities])
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


def test_thresholds_obey_the_least_gain(base: TuningObjective, split: QuerySplit) -> None:
    [fitted] = fit_lists([evidence_of(base)], split, CragFitSettings(upper=0.95, lower=0.9))
    utilities = fitted.utilities(fitted.tuned), fitted.utilities(fitted.default)
    wanted = HeldOutEvaluation(base, split, TUNING.model_copy(update={"min_gain": 1.0}))
    [gain] = wanted.judge_family([utilities])
    assert wanted.decide_verdict(gain) == "keep"


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


def test_without_a_rerank_list_there_are_no_scores(base: TuningObjective) -> None:
    assert system_evidence(system(), base.runs, CragRule()) is None
