"""Chunks collapsed to documents for one query: the order of ``fuse``, with their chunks."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

import fusion_bench as fb
from fusion_bench.errors import AlignmentError, DataError
from fusion_bench.ranking.query_signals import compute_signals
from fusion_bench.schema.record_fields import QueryType
from fusion_bench.schema.search_records import SearchFilters, SearchOptions, SearchQuery
from tests.serving.live.test_pipeline import REPLACE, RUNS, Numbers, Unread, search

SPLIT = {"by": {"split": "#"}}
#: Two lists; the texts are what ``Numbers`` scores them by.
LISTS: Mapping[str, Any] = {
    "bm25": [("a#1", 9.0, "0.1"), ("b#1", 8.0, "0.2"), ("b#2", 7.0, "0.3")],
    "dense": [("b#3", 0.9, "0.4"), ("a#2", 0.8, "0.9"), ("c#1", 0.5, "0.6")],
}
#: The same with ids that hold no parent.
NAMED: Mapping[str, Any] = {
    name: [(f"x{chunk}", score, text, {"parent": chunk[0]}) for chunk, score, text in hits]
    for name, hits in LISTS.items()
}


def system(collapse: Mapping[str, Any], **keys: object) -> dict[str, Any]:
    return {"runs": RUNS, "collapse": {**SPLIT, **collapse}, **keys}


@pytest.mark.parametrize("place", ["each list", "fused", "reranked"])
@pytest.mark.parametrize("how", [{"keep": 2}, *({"score": s} for s in ("max", "sum", "rrf"))])
def test_one_query_is_ranked_as_fuse_ranks_it(place: str, how: dict[str, Any]) -> None:
    generator = random.Random(place)
    for fusion in ("rrf", {"method": "weighted_score", "normalize": "min_max", "missing": "zero"}):
        lists = {
            name: {
                f"d{generator.randrange(6)}#{generator.randrange(5)}": generator.randrange(9) / 4
                for _ in range(12)
            }
            for name in RUNS
        }
        keys = system({"place": place, **how}, fusion=fusion)
        runs = {name: fb.Run.from_dict(name, {"q": hits}) for name, hits in lists.items()}
        expected = fb.fuse(runs, keys).to_dict()["q"]
        found = search(keys, lists).ranked  # fuse makes scores of ties differ
        assert dict(found) == pytest.approx(expected, abs=1e-5)
        assert [name for name, _ in found] == list(expected)


@pytest.mark.parametrize("by", [SPLIT["by"], "parent", {"column": "parent"}, {"field": "parent"}])
def test_a_document_has_its_chunks_as_evidence(by: object) -> None:
    lists, prefix = (LISTS, "") if by == SPLIT["by"] else (NAMED, "x")
    result = search(system({"by": by, "score": "max", "place": "fused"}), lists)
    b, a, c = result.documents
    assert (b.id, a.id, c.id) == ("b", "a", "c")
    # The chunk that stands for it comes first, then the others by their best rank.
    assert [chunk.id for chunk in b.chunks] == [f"{prefix}b#{n}" for n in (3, 1, 2)]
    assert [dict(chunk.ranks) for chunk in b.chunks] == [{"dense": 1}, {"bm25": 2}, {"bm25": 3}]
    assert b.text == b.chunks[0].text == "0.4"
    assert [(hit.list, hit.rank) for hit in b.sources] == [("bm25", 2), ("dense", 1)]
    assert [(hit.list, hit.rank) for hit in c.sources] == [("dense", 3)]
    assert result.to_dict()["documents"][2]["chunks"][0]["id"] == f"{prefix}c#1"


def test_kept_chunks_name_their_documents() -> None:
    result = search(system({"keep": 1}), LISTS)
    assert [(each.id, each.parent, each.chunks) for each in result.documents] == [
        ("b#3", "b", ()),
        ("a#1", "a", ()),
        ("c#1", "c", ()),
    ]
    plain = search({"runs": RUNS}, LISTS).to_dict()["documents"][0]
    assert not {"parent", "chunks"} & set(plain)


@pytest.mark.parametrize(
    ("place", "seen", "order"),
    [
        # a stands for its chunk a#1, b for b#3: only these are read.
        ("fused", ["0.4", "0.1", "0.6"], [("c", 0.6), ("b", 0.4), ("a", 0.1)]),
        (
            "reranked",
            ["0.4", "0.1", "0.9", "0.2", "0.6", "0.3"],
            [("a", 0.9), ("c", 0.6), ("b", 0.4)],
        ),
    ],
)
def test_the_reranker_reads_the_best_chunk_or_all(
    place: str, seen: list[str], order: list[tuple[str, float]]
) -> None:
    reranker = Numbers()
    keys = system({"score": "max", "place": place}, blend=REPLACE)
    result = search(keys, LISTS, rerankers={"r": reranker})
    assert sorted(reranker.seen[0]) == sorted(seen)
    assert list(result.ranked) == order
    assert [each.rerank_score for each in result.documents] == [score for _, score in order]
    assert result.documents[0].chunks[0].text == str(order[0][1])


def test_a_chunk_whose_score_was_not_read_says_nothing_to_crag() -> None:
    keys = system({"score": "max"}, blend=REPLACE)
    read = search(keys, LISTS, rerankers={"r": Numbers()}, crag={}).crag
    unread = search(keys, LISTS, rerankers={"r": Unread(2)}, crag={}).crag  # of c, the best
    assert read is not None
    assert unread is not None
    assert (read.confidence, unread.confidence) == (0.6, 0.4)


@pytest.mark.parametrize("place", ["each list", "fused", "reranked"])
@pytest.mark.parametrize("signal", ["fused top", "fused margin", "rerank top", "top:dense"])
def test_signals_are_those_of_eval(place: str, signal: str) -> None:
    keys = system(
        {"score": "max", "place": place},
        blend=REPLACE,
        abstain={"signal": signal, "above": 0.3},
    )
    rerank = {hit[0]: float(hit[2]) for hits in LISTS.values() for hit in hits}
    lists = {name: {"q": {hit[0]: hit[1] for hit in hits}} for name, hits in LISTS.items()}
    runs = fb.align_runs({"q": {"a": 1}}, lists, rerankers={"r": {"q": rerank}})
    runs = replace(runs, spaces={"r": "unit"})
    expected = compute_signals(fb.System("s", **keys), runs).get(signal)
    found = search(keys, LISTS, rerankers={"r": Numbers()}, crag={})
    assert expected is not None
    assert found.signal_value == pytest.approx(float(expected[0]))
    assert found.answered == bool(expected[0] > 0.3)
    assert found.crag is not None


def test_a_reranker_that_fails_leaves_the_collapsed_order() -> None:
    for place in ("each list", "fused", "reranked"):
        keys = system({"score": "max", "place": place}, blend=REPLACE)
        failing = search(keys, LISTS, rerankers={"r": Numbers(kind="unavailable")})
        plain = search(system({"score": "max", "place": place}), LISTS)
        assert failing.ranked == plain.ranked
        assert failing.degraded


def test_a_chunk_without_a_parent_or_with_two_is_refused() -> None:
    keys = system({"by": "parent", "score": "max"})
    with pytest.raises(AlignmentError, match=r"chunk 'b#3'.* no parent"):
        search(keys, {"bm25": NAMED["bm25"], "dense": LISTS["dense"]})
    own = search(system({"by": "parent", "score": "max", "orphans": "own"}), LISTS)
    assert len(own.documents) == 6
    twice = {"bm25": NAMED["bm25"], "dense": [("xa#1", 1.0, "0.1", {"parent": "b"})]}
    with pytest.raises(DataError, match="'a' and 'b'"):
        search(keys, twice)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"score": "sum"}, [("a", 5.0), ("b", 2.5)]),
        ({"score": "max"}, [("a", 3.0), ("b", 2.5)]),
        ({"score": "rrf", "k": 1}, [("a", 1 / 2 + 1 / 4), ("b", 1 / 3)]),
    ],
)
def test_rows_of_one_id_are_merged(how: dict[str, Any], expected: list[tuple[str, float]]) -> None:
    keys = system({"by": "id", "place": "each list", **how})
    found = search(keys, {"bm25": [("a", 3.0), ("b", 2.5), ("a", 2.0)], "dense": []})
    assert [(each.id, each.sources[0].score) for each in found.documents] == expected
    assert {each.chunks for each in found.documents} == {()}


def test_the_search_record_names_the_best_chunk() -> None:
    options = SearchOptions(limit=10)
    query = SearchQuery(
        text="q", type=QueryType.LOCAL, filters=SearchFilters(min_relevance=0), options=options
    )
    roles = {"bm25": ["keyword"], "dense": ["semantic"]}
    result = search(system({"score": "max"}), LISTS, roles=roles)
    first = result.to_search_result(query).results[0]
    assert (first.id, first.sources.chunk_id) == ("b", "b#3")
    assert 0 < first.relevance.keyword <= 1
