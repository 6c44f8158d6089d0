"""Folds keep groups whole, and none is empty."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.errors import ConfigError
from fusion_bench.tune.validation.cross_validation import assign_folds


@given(
    groups=st.lists(st.sampled_from("abcdefghij"), min_size=8, max_size=40),
    folds=st.integers(2, 5),
    salt=st.text(max_size=3),
)
@settings(max_examples=40, deadline=None)
def test_groups_stay_whole_and_no_fold_is_empty(groups: list[str], folds: int, salt: str) -> None:
    if len(set(groups)) < folds:
        with pytest.raises(ConfigError, match="at most the number of groups to tune on"):
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
    with pytest.raises(ConfigError, match="folds: must be at least 2"):
        assign_folds(["a", "b"], [None, None], folds=1, split_seed="s")
