"""CR2 and its degrees of freedom against the matrices of the papers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.intervals import bell_mccaffrey_freedom, cr2_standard_error, estimate_mean
from tests.stats.samples import normal

SIZES = st.lists(st.integers(1, 9), min_size=2, max_size=8)


def inverse_root(matrix: FloatArray) -> FloatArray:
    """The symmetric inverse square root."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors @ np.diag(values**-0.5) @ vectors.T)


def cr2_matrix(sizes: list[int]) -> FloatArray:
    """M of V = y'My: regression of y on a constant, CR2, working independence."""
    queries = sum(sizes)
    x = np.ones((queries, 1))
    residual_maker = np.eye(queries) - x @ np.linalg.inv(x.T @ x) @ x.T
    form = np.zeros((queries, queries))
    start = 0
    for size in sizes:
        rows = slice(start, start + size)
        adjustment = inverse_root(residual_maker[rows, rows])
        vector = residual_maker[:, rows] @ adjustment @ x[rows] @ np.linalg.inv(x.T @ x)
        form += vector @ vector.T
        start += size
    return form


@settings(deadline=None, max_examples=40)
@given(SIZES, st.integers(0, 1000))
def test_error_and_freedom_are_those_of_the_matrices(sizes: list[int], seed: int) -> None:
    form, values = cr2_matrix(sizes), normal(sum(sizes), seed=seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    estimate = estimate_mean(values, groups)
    assert estimate.standard_error == pytest.approx(math.sqrt(values @ form @ values))
    freedom = np.trace(form) ** 2 / np.trace(form @ form)
    assert estimate.freedom == pytest.approx(freedom)
    assert estimate.freedom + 1e-9 >= 1
    assert estimate.freedom <= len(sizes) - 1 + 1e-9
    reach = stats.t.ppf(0.975, freedom) * estimate.standard_error
    assert (estimate.low, estimate.high) == pytest.approx(
        (estimate.mean - reach, estimate.mean + reach)
    )


@pytest.mark.parametrize(("groups", "size"), [(2, 1), (2, 7), (30, 1), (30, 4)])
def test_groups_of_equal_size_have_one_freedom_less_than_groups(groups: int, size: int) -> None:
    sizes = np.full(groups, size)
    assert bell_mccaffrey_freedom(sizes) == groups - 1
    form = cr2_matrix(sizes.tolist())
    assert np.trace(form) ** 2 / np.trace(form @ form) == pytest.approx(groups - 1)


def test_one_large_group_leaves_little_freedom() -> None:
    assert bell_mccaffrey_freedom(np.array([1000, 1])) == pytest.approx(1)
    assert bell_mccaffrey_freedom(np.array([100] + [1] * 100)) < 5


def test_rows_are_computed_one_by_one() -> None:
    sums, sizes = normal(3, 4), np.array([1, 5, 2, 2])
    rows = cr2_standard_error(sums, sizes)
    assert rows.tolist() == [float(cr2_standard_error(row, sizes)) for row in sums]


def test_one_group_has_no_error() -> None:
    assert np.isnan(cr2_standard_error(np.zeros((2, 1)), np.array([4]))).all()
    assert math.isnan(bell_mccaffrey_freedom(np.array([4])))
