"""Splits: names decide, groups stay whole, each type is cut in proportion."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.data.query_splits import (
    QuerySplit,
    dataset_split,
    groups_by_type,
    hash_position,
    hashed_split,
    split_queries,
)
from fusion_bench.data.records import Query
from fusion_bench.errors import ConfigError
from tests.examples import examples
from tests.texts import names_in_order
from tests.tune.cases import aligned

QUERIES = [(f"q{i}", f"g{i // 3}", "ab"[i // 3 % 2]) for i in range(300)]
GROUPS = [group for _, group, _ in QUERIES]
TYPES: list[str | None] = [query_type for *_, query_type in QUERIES]


def test_a_place_is_the_first_53_bits_of_the_hash() -> None:
    digest = hashlib.sha256(b"salt\0q1").hexdigest()
    assert hash_position("q1", "salt") == int(digest[:16], 16) // 2**11 / 2**53
    assert hash_position("q1", "salt") != hash_position("q1", "other")
    assert hash_position("q1", "ab") != hash_position("bq1", "a"), (
        "the border of salt and name is hashed too"
    )


def test_places_are_spread_evenly() -> None:
    places = np.array([hash_position(f"q{i}", "s") for i in range(4000)])
    counts = np.histogram(places, bins=8, range=(0, 1))[0]
    assert counts.sum() == 4000
    assert abs(counts - 500).max() < 5 * np.sqrt(500)


@given(salt=st.text(max_size=5), share=st.floats(0.2, 0.8))
@settings(max_examples=examples(25))
def test_no_group_straddles_and_every_type_keeps_its_proportion(salt: str, share: float) -> None:
    split = hashed_split(GROUPS, TYPES, split_seed=salt, held_out=share)
    assert not (split.tune & split.held_out).any()
    assert (split.tune | split.held_out).all()
    sides = {(group, bool(side)) for group, side in zip(GROUPS, split.held_out, strict=True)}
    assert len(sides) == len(set(GROUPS))
    for name in "ab":
        own = split.held_out[[t == name for t in TYPES]]
        assert abs(own.sum() - share * len(own)) <= 1.5, "half of a group of three"


def test_the_order_of_queries_decides_nothing() -> None:
    split = hashed_split(GROUPS, TYPES, split_seed="s")
    order = np.random.default_rng(0).permutation(len(GROUPS))
    shuffled = hashed_split([GROUPS[i] for i in order], [TYPES[i] for i in order], split_seed="s")
    assert (shuffled.held_out == split.held_out[order]).all()
    assert not split.held_out.all()


@given(extra=st.integers(1, 40), salt=st.sampled_from(["", "x", "7"]))
@settings(max_examples=examples(25))
def test_added_groups_move_at_most_as_many_and_none_of_another_type(extra: int, salt: str) -> None:
    groups = [f"g{i}" for i in range(200)]
    types = ["ab"[i % 2] for i in range(200)]
    before = hashed_split(groups, types, split_seed=salt)
    after = hashed_split(
        groups + [f"new{i}" for i in range(extra)], types + ["a"] * extra, split_seed=salt
    )
    moved = before.held_out != after.held_out[:200]
    assert moved.sum() <= extra
    assert not moved[[t == "b" for t in types]].any()


def test_another_salt_gives_another_split() -> None:
    splits = {hashed_split(GROUPS, TYPES, split_seed=str(i)).held_out.tobytes() for i in range(20)}
    assert len(splits) == 20


def test_a_group_counts_under_its_most_common_type_the_first_by_name_when_level() -> None:
    groups = ["g", "g", "g", "h", "h", "n", "n"]
    types = ["b", "a", "b", "b", "a", "z", None]
    assert groups_by_type(groups, types) == {"b": ["g"], "a": ["h"], None: ["n"]}


def test_a_part_without_queries_is_refused() -> None:
    with pytest.raises(ConfigError, match="to judge on"):
        hashed_split(["g"], [None], split_seed="s", held_out=0.1)


def test_the_datasets_own_split_wins() -> None:
    runs = aligned(queries=6)
    splits = ["train", "dev", "test", "dev", "test", None]
    known = {q: Query(q, split=s) for q, s in zip(runs.queries, splits, strict=True)}
    split = split_queries(runs, known, split_seed="ignored")
    assert split.tune.tolist() == [s == "dev" for s in splits]
    assert split.held_out.tolist() == [s == "test" for s in splits]
    assert split.split_seed is None
    assert names_in_order(split.origin, "on dev", "on test")


def test_without_both_of_them_the_hash_decides() -> None:
    runs = aligned(queries=8)
    known = {q: Query(q, split="test") for q in runs.queries[:4]}
    assert dataset_split(runs.queries, known) is None
    split = split_queries(runs, known, split_seed="s", held_out=0.25)
    assert split.held_out.sum() == 2
    assert split.split_seed == "s"
    assert names_in_order(split.origin, "25% of each", "query id")


def test_a_group_in_both_of_the_datasets_own_splits_is_refused() -> None:
    runs = aligned(queries=4, groups=["g", "g", "h", "h"])
    known = {
        q: Query(q, split=s)
        for q, s in zip(runs.queries, ["dev", "test", "dev", "dev"], strict=True)
    }
    with pytest.raises(ConfigError, match=r"dev and in"):
        split_queries(runs, known, split_seed="s")


def test_a_query_in_both_parts_is_refused() -> None:
    both = np.array([True, False])
    with pytest.raises(ConfigError, match="in both parts"):
        QuerySplit(both, both, "by hand")


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
def test_a_share_out_of_range_is_refused(share: float) -> None:
    with pytest.raises(ConfigError, match=r"held_out: .*below 1"):
        hashed_split(GROUPS, TYPES, split_seed="s", held_out=share)
