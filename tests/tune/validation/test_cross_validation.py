"""Folds keep groups whole, and none is empty."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.errors import ConfigError
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.tune.splits import QuerySplit
from fusion_bench.tune.trial_selection import assign_folds, fit_default_folds


@given(
    groups=st.lists(st.sampled_from("abcdefghij"), min_size=8, max_size=40),
    folds=st.integers(2, 5),
    salt=st.text(max_size=3),
)
@settings(max_examples=40, deadline=None)
def test_groups_stay_whole_and_no_fold_is_empty(groups: list[str], folds: int, salt: str) -> None:
    if len(set(groups)) < folds:
        with pytest.raises(ConfigError, match="number of groups"):
            assign_folds(groups, [None] * len(groups), folds=folds, split_seed=salt)
        return
    fold = assign_folds(groups, [None] * len(groups), folds=folds, split_seed=salt)
    assert set(fold.tolist()) == set(range(folds))
    assert len(set(zip(groups, fold.tolist(), strict=True))) == len(set(groups))


def test_every_type_is_dealt_to_every_fold() -> None:
    names = [f"q{i}" for i in range(30)]
    types = ["ab"[i % 2] for i in range(30)]
    fold = assign_folds(names, types, folds=5, split_seed="s")
    for name in "ab":
        counts = np.bincount(fold[[t == name for t in types]], minlength=5)
        assert counts.tolist() == [3] * 5
    assert (fold != assign_folds(names, types, folds=5, split_seed="t")).any()


def test_one_fold_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 2"):
        assign_folds(["a", "b"], [None, None], folds=1, split_seed="s")


def split_all(count: int) -> QuerySplit:
    part = np.ones(count, dtype=bool)
    return QuerySplit(part, part.copy(), "all", is_cross_fitted=True)


@pytest.mark.parametrize(
    ("groups", "given", "folds", "origin"),
    [
        ("abcde", {}, 5, "all"),
        ("abcd", {}, 4, "all; 4 folds instead of 5, as there are only 4 groups"),
        ("aabbccdd", {}, 4, "all; 4 folds instead of 5, as there are only 4 groups"),
        ("abcd", {"folds": 5}, 5, "all"),
        ("abc", {"folds": 2}, 2, "all"),
        ("abc", {"folds": 0}, 0, "all"),
    ],
)
def test_default_folds_fit_few_groups_and_those_of_the_user_stay(
    groups: str, given: dict[str, int], folds: int, origin: str
) -> None:
    tuning = TuneSettings.model_validate({"system": "tuned", **given})
    lowered, split = fit_default_folds(groups, split_all(len(groups)), tuning)
    assert (lowered.folds, split.origin) == (folds, origin)


def test_too_few_groups_are_refused_before_the_search() -> None:
    with pytest.raises(ConfigError, match="6 queries of 3 groups"):
        fit_default_folds("aabbcc", split_all(6), TuneSettings(system="tuned"))
