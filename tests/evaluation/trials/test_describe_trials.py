"""Records about trials: disagreement, shares of the variance, what narrows an interval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusion_bench.evaluation import results
from fusion_bench.evaluation.assessment import describe_narrowing
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.stats.comparison_family import (
    ComparedValues,
    FusionAnswer,
    compare_family,
    decide_fusion,
)
from fusion_bench.stats.trial_variance import make_trial_terms
from tests.evaluation.trials.reports import run
from tests.trials_project import TRIALS, make

QUERIES, COUNT = 60, 3


def test_a_row_says_how_far_its_trials_lie_apart(repeated: Collection) -> None:
    trials = repeated.system("a").trials
    assert trials is not None
    assert trials.lists == ("runs/a",)
    assert trials.means == pytest.approx([2.5 / 4, 3 / 4, 2 / 4])
    assert trials.sd == pytest.approx(0.125)
    assert (trials.disagreeing_pair, trials.disagreeing) == (1, 2)
    shares = (trials.query_share, trials.trial_share, trials.residual_share)
    assert sum(share or 0 for share in shares) == pytest.approx(1)
    assert repeated.system("b").trials is None


def test_a_comparison_says_what_narrows_it(repeated: Collection) -> None:
    comparison = repeated.comparison("a", "RR@10")
    assert comparison is not None
    assert comparison.trial_share is not None
    narrowing = comparison.narrowing
    assert narrowing is not None
    assert narrowing.added_queries == 2  # 4 queries, 3 trials of one system
    assert narrowing.all_trials <= narrowing.one_trial <= narrowing.now
    assert narrowing.all_queries <= narrowing.more_queries <= narrowing.now
    secondary = repeated.comparison("a", "nDCG@10")
    assert secondary is not None
    assert secondary.narrowing is None


def make_values(*, is_shared: bool) -> ComparedValues:
    """Two systems whose trials all move by the same amount; what a fusion of one adds is fixed."""
    random = np.random.default_rng(5)
    query = random.normal(0.5, 0.1, QUERIES)
    moves = np.array([-0.1, 0.0, 0.1])[:, None]
    agent = query + moves
    fused = agent + random.normal(0.01, 0.02, QUERIES)
    lists = frozenset({"runs/agent"})
    return ComparedValues(
        "nDCG@10",
        {"agent": agent.mean(axis=0), "fused": fused.mean(axis=0)},
        "agent",
        tuple(map(str, range(QUERIES))),
        trials={"agent": agent, "fused": fused},
        trial_lists={"agent": lists, "fused": lists} if is_shared else {},
    )


def test_trials_of_a_shared_list_cancel() -> None:
    ((shared,),) = compare_family([make_values(is_shared=True)])
    ((nested,),) = compare_family([make_values(is_shared=False)])
    assert shared.difference == nested.difference
    assert shared.trial_share == 0
    assert (nested.trial_share or 0) > 0.9
    assert nested.high - nested.low > 10 * (shared.high - shared.low)


def test_the_plan_of_a_shared_list_is_that_of_the_differences() -> None:
    shared = describe_narrowing(make_values(is_shared=True), "fused", alpha=0.05)
    nested = describe_narrowing(make_values(is_shared=False), "fused", alpha=0.05)
    assert shared is not None
    assert nested is not None
    assert shared.now < nested.now
    assert not shared.prefers_trials
    assert nested.prefers_trials
    assert shared.added_queries == nested.added_queries == QUERIES / COUNT


def test_systems_of_one_trial_have_no_plan() -> None:
    values = make_values(is_shared=True)
    alone = ComparedValues(values.measure, values.values, values.baseline, values.keys)
    assert describe_narrowing(alone, "fused", alpha=0.05) is None


def test_whether_fusion_pays_accounts_for_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[dict[str, Any]] = []

    def spy(*arguments: Any, **options: Any) -> FusionAnswer:  # noqa: ANN401 - handed on
        calls.append(options)
        return decide_fusion(*arguments, **options)

    monkeypatch.setattr(results, "decide_fusion", spy)
    make(tmp_path, *TRIALS)
    collection = run(tmp_path).collections[0]
    values = collection.trial_values()
    groups = np.array([0, 0, 1, 2])  # q1 and q2 are one
    [options] = calls
    assert options["trial_terms"] == {
        ("both", "a"): make_trial_terms([values["both"][:, 0] - values["a"][:, 0]], groups),
        ("both", "b"): make_trial_terms([values["both"][:, 0], None], groups),
    }
