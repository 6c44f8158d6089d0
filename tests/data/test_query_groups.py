"""Groups of queries: found by documents or by text."""

import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.data.qrels import Qrels
from fusion_bench.data.query_groups import (
    MAX_BUCKET,
    QueryGroups,
    QueryLink,
    find_query_groups,
    jaccard_index,
    normalize_text,
    propose_pairs,
)
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run

Texts = Mapping[str, str]


def ranked(documents: Sequence[str]) -> dict[str, float]:
    return {document: float(-rank) for rank, document in enumerate(documents)}


def lists_of(query: str, size: int = 10) -> list[str]:
    return [f"{query}-{i}" for i in range(size)]


def search(
    texts: Texts,
    *,
    lists: Mapping[str, Sequence[str]] | None = None,
    groups: Mapping[str, str] | None = None,
    relevant: Mapping[str, Mapping[str, int]] | None = None,
) -> QueryGroups:
    """Groups of queries with these texts; lists and judgments are their own unless given."""
    records = {q: Query(q, text, group=(groups or {}).get(q)) for q, text in texts.items()}
    run = Run.from_dict("a", {q: ranked((lists or {}).get(q, lists_of(q))) for q in texts})
    qrels = Qrels.from_dict({q: (relevant or {}).get(q, {f"{q}-0": 1}) for q in texts})
    return find_query_groups(tuple(texts), records, [run], qrels)


def members(groups: QueryGroups) -> list[list[str]]:
    return [
        [q for q, code in zip(groups.queries, groups.codes, strict=True) if code == joined]
        for joined in groups.joined
    ]


FAR = {f"x{i}": f"{'abcdefghijk'[i] * 9} zzz{i}" for i in range(11)}


def test_ten_texts_of_four_copies_each() -> None:
    copies = ("How is {} made?", "how is {} made", "  How is {} MADE!", "how, is {} made?")
    things = ["glass", "rope", "paper", "cider", "ink", "soap", "brick", "honey", "felt", "steel"]
    texts = {f"{t}{i}": copy.format(t) for t in things for i, copy in enumerate(copies)}
    found = search(texts)
    assert members(found) == [[f"{t}{i}" for i in range(4)] for t in things]
    assert {link.reason for link in found.links} == {"same text"}
    assert not found.is_too_large


def test_similar_texts_need_overlapping_lists() -> None:
    texts = {"a": "how to reset my password", "b": "how do I reset the password", **FAR}
    shared = {"a": lists_of("s"), "b": [*lists_of("s", 5), *lists_of("b", 5)]}
    assert members(search(texts, lists=shared)) == [["a", "b"]]
    assert search(texts, lists=shared).links == (QueryLink(0, 1, "similar text"),)
    less = {"a": lists_of("s"), "b": [*lists_of("s", 4), *lists_of("b", 6)]}
    assert members(search(texts, lists=less)) == []
    other = {"a": "how to reset my password", "b": "bake a loaf", **FAR}
    assert members(search(other, lists=shared)) == []


def test_equal_lists_and_equal_judgments() -> None:
    same = {"x1": lists_of("s"), "x2": lists_of("s")}
    assert search(FAR, lists=same).links == (QueryLink(1, 2, "same lists"),)
    short = {"x1": lists_of("s", 4), "x2": lists_of("s", 4)}
    assert search(FAR, lists=short).links == ()
    turned = {"x1": lists_of("s"), "x2": lists_of("s")[::-1]}
    assert search(FAR, lists=turned).links == ()
    relevant = {"x1": {"d": 2, "e": 0}, "x2": {"f": 0, "d": 2}, "x3": {"d": 1}, "x4": {"d": 0}}
    found = search(FAR, relevant=relevant)
    assert found.links == (QueryLink(1, 2, "same relevant documents"),)


def test_declared_groups_are_joined_and_links_inside_them_are_none() -> None:
    texts = {**FAR, "x3": FAR["x1"], "x4": FAR["x2"]}
    inside = search(texts, groups={"x1": "g", "x3": "g", "x2": "h", "x4": "h"})
    assert (inside.links, members(inside)) == ((), [])
    across = search(texts, groups={"x1": "g", "x2": "g", "x9": "h", "x4": "h"})
    assert members(across) == [["x1", "x2", "x3", "x4", "x9"]]
    names = dict(zip(across.queries, across.names(), strict=True))
    assert {names[q] for q in ("x1", "x2", "x3", "x4", "x9")} == {"g"}
    assert names["x5"] == "x5"


@pytest.mark.parametrize(("copies", "is_too_large"), [(2, False), (3, True)])
def test_a_group_over_a_fifth_is_too_large(copies: int, is_too_large: bool) -> None:
    texts = {**FAR, **{f"x{i}": "copy" for i in range(copies)}}
    assert search(texts).is_too_large == is_too_large
    declared = search(FAR, groups={f"x{i}": "g" for i in range(9)})
    assert not declared.is_too_large


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8),
    st.lists(st.sampled_from("abcdefghij"), min_size=10, max_size=10),
)
def test_links_are_followed(pairs: list[tuple[int, int]], declared: list[str]) -> None:
    links = tuple(QueryLink(min(p), max(p), "same text") for p in pairs)
    found = QueryGroups(tuple(map(str, range(10))), tuple(declared), links)
    reach = np.array([[a == b or declared[a] == declared[b] for a in range(10)] for b in range(10)])
    for a, b in pairs:
        reach[a, b] = reach[b, a] = True
    for _ in range(4):
        reach = reach @ reach
    assert (reach == (found.codes[:, None] == found.codes)).all()
    distinct = list(dict.fromkeys(found.codes.tolist()))
    assert distinct == list(range(len(distinct)))
    for code in set(found.codes.tolist()):
        of_group = {declared[i] for i in np.flatnonzero(found.codes == code)}
        assert (code in found.joined) == (len(of_group) > 1)
        assert {found.names()[i] for i in np.flatnonzero(found.codes == code)} == {min(of_group)}


def test_the_order_of_queries_and_switched_sources_change_no_group() -> None:
    texts = {**FAR, "x3": FAR["x1"], "x7": FAR["x2"], "x8": FAR["x2"]}
    first = search(texts)
    turned = search(dict(reversed(texts.items())))
    assert dict(zip(first.queries, first.names(), strict=True)) == dict(
        zip(turned.queries, turned.names(), strict=True)
    )
    queries = tuple(f"q{i}" for i in range(12))
    qrels = Qrels.from_dict({q: {f"{q}-0": 1} for q in queries})
    run = Run.from_dict("a", {"q0": ranked(lists_of("q0"))})
    assert find_query_groups(queries, {}, [run], qrels).links == ()


THINGS = "salt ship lantern market barrel tide keeper guild harbor vine copper apple"


def slow_jaccard(first: str, second: str) -> float:
    one, other = (
        {padded[i : i + 3] for i in range(len(padded) - 2)}
        for padded in (f" {text} " for text in (first, second))
    )
    return len(one & other) / len(one | other)


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("How  to reset: my Password?", "how to reset my password"),
        ("ＳＴＲＡＳＳＥ №1", "strasse no1"),
        ("Straße", "strasse"),
        ("東京の・天気", "東京の 天気"),
        ("?!", ""),
    ],
)
def test_normalized_texts(text: str, normalized: str) -> None:
    assert normalize_text(text) == normalized


@given(st.text(min_size=1, max_size=12), st.text(min_size=1, max_size=12))
def test_jaccard_index_is_that_of_the_sets(first: str, second: str) -> None:
    assert jaccard_index(first, second) == pytest.approx(slow_jaccard(first, second))


def test_pairs_of_similar_texts_are_proposed_and_most_others_are_not() -> None:
    random = np.random.default_rng(1)
    texts = [" ".join(random.choice(THINGS.split(), 6, replace=False)) for _ in range(150)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proposed = {(a, b) for a, b in propose_pairs(texts).tolist()}
    similar = {
        (a, b) for a, b in combinations(range(150), 2) if slow_jaccard(texts[a], texts[b]) >= 0.5
    }
    assert len(similar) > 100
    assert len(similar - proposed) <= 0.02 * len(similar)
    assert all(a < b for a, b in proposed)


@pytest.mark.parametrize("texts", [[], ["one"]])
def test_one_text_has_no_pair(texts: list[str]) -> None:
    assert propose_pairs(texts).shape == (0, 2)


def test_a_phrase_that_many_share_is_no_copy() -> None:
    texts = ["a"] * (MAX_BUCKET + 1)
    assert propose_pairs(texts).shape == (0, 2)
    assert len(propose_pairs(texts[:20])) == 190
