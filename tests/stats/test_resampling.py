"""Draws and blocks, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fusion_bench.errors import ConfigError, DataError
from fusion_bench.stats.corrections import randomization_p_values
from fusion_bench.stats.intervals import estimate_mean, random_words
from tests.stats.samples import normal


@pytest.mark.parametrize("row_bytes", [1 << 22, 1 << 15, 5_000])
def test_the_size_of_a_block_changes_no_word(row_bytes: int) -> None:
    whole = np.concatenate(list(random_words(5, 1234, 3, row_bytes=1)))
    blocks = list(random_words(5, 1234, 3, row_bytes=row_bytes))
    assert len(blocks) > 1
    assert np.concatenate(blocks).tolist() == whole.tolist()


def test_what_cannot_be_is_refused() -> None:
    values = normal(4)
    for alpha in (0.0, 1.0, math.nan):
        with pytest.raises(ConfigError, match="alpha"):
            estimate_mean(values, alpha=alpha)
    with pytest.raises(ConfigError, match="dimension"):
        randomization_p_values(values)
    with pytest.raises(ConfigError, match="code per query"):
        estimate_mean(values, np.arange(3))
    with pytest.raises(ConfigError, match="resamples"):
        randomization_p_values(values[None], resamples=0)
    with pytest.raises(ConfigError, match="seed"):
        randomization_p_values(normal(1, 40), seed=-1)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_numbers_that_are_none_are_refused(wrong: float) -> None:
    with pytest.raises(DataError, match=r"values\[2\]"):
        estimate_mean(np.array([0.0, 1.0, wrong]))
    with pytest.raises(DataError, match=r"values\[0, 1\]"):
        randomization_p_values(np.array([[0.0, wrong]]))


def test_no_query_has_no_mean() -> None:
    with pytest.raises(DataError, match="least one query"):
        estimate_mean(np.array([]))
