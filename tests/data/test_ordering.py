import math
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from fusion_bench.data.grouped_rows import to_offsets
from fusion_bench.data.ordering import (
    choose_values,
    make_readonly,
    positions,
    score_keys,
    starts_equal_scores,
    sum_terms,
    tie_group_starts,
)
from fusion_bench.data.run import already_sorted
from tests.examples import examples

MANY = settings(max_examples=examples(120))
TERMS = st.one_of(
    st.floats(-1e300, 1e300),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1.0, -1.0, 0.1, 1e16, -1e16, 1e300]),
    st.integers(1, 2000).map(lambda r: 1 / (60 + r)),
    st.integers(-110, 60).map(lambda e: 2.0**e),
    st.integers(-110, 60).map(lambda e: -(2.0**e)),
)


# choose_values ----------------------------------------------------------------------------------


@MANY
@given(st.lists(st.tuples(st.booleans(), st.floats(), st.floats())))
def test_values_are_chosen_to_the_last_bit(rows: list[tuple[bool, float, float]]) -> None:
    is_first = np.array([row[0] for row in rows], dtype=bool)
    first, second = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, 2).T
    for other in (second, 0.0, np.nan):
        expected = np.where(is_first, first, other)
        assert choose_values(is_first, first, other).tobytes() == expected.tobytes()


# sum_terms --------------------------------------------------------------------------------------


@MANY
@given(st.lists(st.lists(TERMS, min_size=7, max_size=7), max_size=4), st.integers(0, 7))
@example([[1.0, 2.0**-53, 2.0**-110, 0.0, 0.0, 0.0, 0.0]], 3)
@example([[1e300, 1.0, -1e300, 0.0, 0.0, 0.0, 0.0]], 3)
@example([[1.0, -(2.0**-54), -(2.0**-108), 0.0, 0.0, 0.0, 0.0]], 3)
@example([[2.0**53, 1.0, 2.0**-60, -(2.0**-60), 2.0**-1000, 0.0, 0.0]], 5)
def test_sums_are_those_of_fsum(columns: list[list[float]], terms: int) -> None:
    table = np.array(columns, dtype=np.float64).reshape(len(columns), 7).T[:terms]
    found = sum_terms(table)
    assert found.shape == (len(columns),)
    assert found.tolist() == [math.fsum(column) for column in table.T.tolist()]


@MANY
@given(st.lists(TERMS, min_size=1, max_size=8))
@example([1.0, 2.0**-53, 2.0**-110])
def test_one_column_alone_is_summed_too(terms: list[float]) -> None:
    assert float(sum_terms(np.array(terms))) == math.fsum(terms)


@MANY
@given(st.lists(st.integers(1, 50), min_size=3, max_size=6), st.randoms())
def test_the_order_of_terms_changes_nothing(ranks: list[int], random: Random) -> None:
    shuffled = random.sample(ranks, len(ranks))
    terms, moved = (np.array([[1 / (60 + rank)] for rank in order]) for order in (ranks, shuffled))
    assert sum_terms(terms).tolist() == sum_terms(moved).tolist()


def test_sums_of_more_axes_leave_their_input_alone() -> None:
    assert sum_terms(np.empty((0, 3))).tolist() == [0.0, 0.0, 0.0]
    table = np.array([1.0, 2.0**-53, 2.0**-110]).repeat(4).reshape(3, 2, 2)
    assert sum_terms(table).tolist() == [[math.fsum(table[:, 0, 0])] * 2] * 2
    column = np.array([[1.0], [2.0], [3.0]])
    make_readonly(column)
    sum_terms(column)
    assert column.tolist() == [[1.0], [2.0], [3.0]]
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 1.0
    alone = sum_terms(column[:1])
    alone[0] = 9.0
    assert column[0, 0] == 1.0


# score_keys -------------------------------------------------------------------------------------

BOUNDARIES = [
    math.nextafter(10.0**n, direction)
    for n in range(-30, 31)
    for direction in (-math.inf, 10.0**n, math.inf)
]
HALVES = [(123456789012 + n + 0.5) * 10.0**e for n in range(20) for e in (-30, -15, -12, 0, 9, 12)]


@MANY
@given(
    st.lists(
        st.one_of(
            st.floats(allow_nan=False, allow_infinity=False),
            st.sampled_from([*BOUNDARIES, *HALVES, 9.999999999995, 0.99999999999949999, 5e-324]),
        )
    )
)
def test_keys_are_what_twelve_digits_read_back_as(scores: list[float]) -> None:
    found = score_keys(np.array(scores, dtype=np.float64))
    assert found.tolist() == [float(f"{score:.11e}") for score in scores]


def test_keys_at_every_boundary_and_of_what_is_no_number() -> None:
    carries = [9.999999999995 * 10.0**n for n in range(-12, 12)]  # half a unit below 10
    nearby = [math.nextafter(x, direction) for x in carries for direction in (0.0, math.inf)]
    table = np.array([*BOUNDARIES, *HALVES, *(-x for x in BOUNDARIES), *carries, *nearby])
    assert score_keys(table).tolist() == [float(f"{x:.11e}") for x in table.tolist()]
    found = score_keys(np.array([[np.nan, np.inf], [-np.inf, -0.0]]))
    assert np.isnan(found[0, 0])
    assert found[0, 1] == np.inf
    assert found[1, 0] == -np.inf
    assert not np.signbit(found[1, 1])


@MANY
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.one_of(st.floats(), st.sampled_from([1.0, 1 + 1e-13, 1e308, -1e308, 0.0, -0.0])),
        )
    )
)
def test_groups_of_equal_scores_start_where_the_key_or_the_list_changes(
    rows: list[tuple[int, float]],
) -> None:
    lists = np.array([row[0] for row in rows], dtype=np.int64)
    scores = np.array([row[1] for row in rows], dtype=np.float64)
    keys = [float(f"{score:.11e}") for score in scores.tolist()]
    expected = [
        n == 0 or rows[n][0] != rows[n - 1][0] or keys[n] != keys[n - 1] for n in range(len(rows))
    ]
    assert starts_equal_scores(scores, lists).tolist() == expected


# positions and tie_group_starts -------------------------------------------------------------------


@st.composite
def candidates(draw: DrawFn) -> tuple[list[list[tuple[float, int, int]]], bool, bool]:
    """Per query: (score, tier, tie value), and whether tiers and tie values are handed in."""
    score = st.one_of(
        st.sampled_from([1.0, 2.0, 1.0 + 1e-13, -0.0, 0.0, math.nan]), st.floats(-9, 9)
    )
    query = st.lists(st.tuples(score, st.integers(-1, 2), st.integers(0, 3)), max_size=8)
    return draw(st.lists(query, min_size=1, max_size=4)), draw(st.booleans()), draw(st.booleans())


@MANY
@given(candidates())
def test_positions_are_those_of_a_plain_sort(
    case: tuple[list[list[tuple[float, int, int]]], bool, bool],
) -> None:
    queries, tiered, tied = case
    rows = [row for query in queries for row in query]
    offsets = to_offsets(np.array([len(query) for query in queries], dtype=np.int64))
    scores = np.array([score for score, _, _ in rows], dtype=np.float64)
    tiers = np.array([tier for _, tier, _ in rows], dtype=np.int8) if tiered else None
    ties = np.array([tie for _, _, tie in rows], dtype=np.int64) if tied else None
    placed = positions(scores, offsets, tiers=tiers, tie_order=ties)
    firsts = tie_group_starts(placed, scores, offsets, tiers=tiers)
    for q, query in enumerate(queries):
        keys = {
            n: (tier if tiered else 0, -float(f"{score:.11e}"))
            for n, (score, tier, _) in enumerate(query)
            if not math.isnan(score) and not (tiered and tier < 0)
        }
        order = sorted(keys, key=lambda n: (keys[n], query[n][2] if tied else 0, n))
        expected = [order.index(n) + 1 if n in keys else 0 for n in range(len(query))]
        heads = [
            1 + min(order.index(m) for m in keys if keys[m] == keys[n]) if n in keys else 0
            for n in range(len(query))
        ]
        mine = slice(int(offsets[q]), int(offsets[q + 1]))
        assert placed[mine].tolist() == expected
        assert firsts[mine].tolist() == heads


def test_a_lower_tier_stands_wholly_above() -> None:
    placed = positions(
        np.array([1.0, 9.0, 5.0]), np.array([0, 3]), tiers=np.array([0, 1, -1], dtype=np.int8)
    )
    assert placed.tolist() == [1, 2, 0]


@given(
    st.lists(
        st.lists(
            st.sampled_from([0.0, -0.0, 1.0, 1 + 1e-12, 1 + 4e-12, 1 - 4e-12, 5e-324, -2.0, 1e300]),
            max_size=5,
        ),
        min_size=1,
    ),
    st.booleans(),
)
def test_settled_says_where_nothing_would_move(lists: list[list[float]], by_file: bool) -> None:
    scores = np.array([score for one in lists for score in one], dtype=np.float64)
    offsets = to_offsets(np.array([len(one) for one in lists]))
    ties = None if by_file else np.arange(len(scores)) * 7 % 5
    placed = positions(scores, offsets, tie_order=ties)
    expected = [
        placed[start:stop].tolist() == list(range(1, stop - start + 1))
        for start, stop in pairwise(offsets.tolist())
    ]
    assert already_sorted(scores, offsets, tie_order=ties).tolist() == expected
