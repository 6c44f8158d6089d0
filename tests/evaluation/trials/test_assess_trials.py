"""Systems of several trials: every value is the mean of what each trial alone gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusion_bench.errors import AlignmentError
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.stats.trial_variance import mean_of_trials
from tests.evaluation.trials.reports import run
from tests.tiny import EXPERIMENT, edit
from tests.trials_project import FIRST, TRIALS, make, make_plain

KEPT = ("judged_only", "filled")


def values_of(collection: Collection, name: str, measure: str) -> list[Any]:
    return list(collection.system(name).measures[measure].values)


@pytest.mark.parametrize("name", ["a", "b", "both"])
@pytest.mark.parametrize("measure", ["RR@10", "nDCG@10"])
def test_values_are_those_of_each_trial_and_their_means(
    name: str, measure: str, repeated: Collection, alone: list[Collection]
) -> None:
    expected = [values_of(each, name, measure) for each in alone]
    result = repeated.system(name).measures[measure]
    assert result.values == pytest.approx(np.mean(expected, axis=0), rel=0, abs=1e-15)
    assert [*map(list, result.trials)] == (expected if name != "b" else [])


@pytest.mark.parametrize("name", ["a", "both"])
def test_ties_and_unjudged_documents_are_means_too(
    name: str, repeated: Collection, alone: list[Collection]
) -> None:
    rows = [each.system(name) for each in alone]
    row = repeated.system(name)
    for field in KEPT:
        expected = np.mean([getattr(each, field) for each in rows], axis=0)
        assert np.allclose(getattr(row, field), expected, rtol=0, atol=1e-15)
    shares = [each.unjudged_share or 0 for each in rows]
    assert row.unjudged_share == pytest.approx(np.mean(shares))
    for measure in repeated.measures:
        for kind in ("ties", "source_ties"):
            of_trials = [getattr(each.measures[measure], kind) for each in rows]
            merged = getattr(row.measures[measure], kind)
            for end in ("minimum", "maximum", "expected"):
                expected = np.mean([getattr(each, end) for each in of_trials])
                assert getattr(merged, end) == pytest.approx(expected)


def test_a_query_without_an_answer_counts_0_in_its_trial(repeated: Collection) -> None:
    result = repeated.system("a").measures["RR@10"]
    q4 = repeated.queries.index("q4")
    assert [trial[q4] for trial in result.trials] == [0.5, 0.5, 0]
    assert result.values[q4] == pytest.approx(1 / 3)


def test_references_are_means_over_trials(repeated: Collection, alone: list[Collection]) -> None:
    pools = [values_of(each, "perfect order", "RR@10") for each in alone]
    assert np.allclose(
        values_of(repeated, "perfect order", "RR@10"), np.mean(pools, axis=0), atol=1e-15
    )
    best = np.maximum(values_of(repeated, "a", "RR@10"), values_of(repeated, "b", "RR@10"))
    assert values_of(repeated, "best source per query (oracle)", "RR@10") == best.tolist()


def test_one_trial_makes_the_report_of_one_list(tmp_path: Path) -> None:
    make(tmp_path / "glob", FIRST)
    make_plain(tmp_path / "plain", FIRST)
    first, second = run(tmp_path / "glob"), run(tmp_path / "plain")
    assert first.collections == second.collections


def test_trials_that_agree_keep_their_value_to_the_last_bit() -> None:
    values = np.array([[0.1, 0.1], [0.1, 0.4], [0.1, np.nan]])
    mean = mean_of_trials(values)
    assert mean[0] == 0.1
    assert np.isnan(mean[1])
    assert not mean.flags.writeable


def test_a_trained_system_learns_from_its_own_trial(tmp_path: Path) -> None:
    for root in (tmp_path / "repeated", tmp_path / "alone"):
        make(root, *TRIALS) if root.name == "repeated" else make_plain(root, TRIALS[1])
        edit(
            root,
            EXPERIMENT,
            "both: {runs: [a, b]}",
            "both: {runs: [a, b], fusion: {method: bayes_fuse, folds: 2}}",
        )
    trials = run(tmp_path / "repeated").collections[0].trial_values()["both"]
    alone = run(tmp_path / "alone").collections[0].system_values()["both"]
    assert trials[1].tolist() == alone.tolist()


def test_a_trial_of_other_queries_is_named(tmp_path: Path) -> None:
    make(tmp_path, FIRST, FIRST.replace("q", "x"))
    with pytest.raises(AlignmentError, match="tiny, trial 2: run 'a' "):
        run(tmp_path)
