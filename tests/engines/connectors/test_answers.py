"""What single engines answer, beyond what all connectors hold."""

import asyncio
import json
import math
from threading import Event

import pytest

from fusion_bench.engines.connectors import Hit, check_hits, make_hit
from fusion_bench.engines.connectors._sessions import LONGEST_MESSAGE, call_library
from fusion_bench.engines.connectors.qdrant import QdrantSource, source_sign
from fusion_bench.engines.connectors.vespa import read_id
from fusion_bench.errors import ConfigError, ProviderError
from tests.engines.connectors.cases import CASES
from tests.engines.connectors.fake_hybrid import FakeAzure, FakeVespa
from tests.engines.connectors.fake_search import FakeElasticsearch
from tests.engines.connectors.fake_vectors import FakeChroma, FakeMilvus, FakeQdrant
from tests.engines.connectors.loopback import DOCUMENTS, BadRequestError, Json, serving
from tests.engines.connectors.test_contract import build, read
from tests.engines.local.cases import ask


@pytest.mark.parametrize(
    ("name", "document"),
    [("qdrant", "6"), ("milvus", "6"), ("weaviate", "00000000-0000-0000-0000-000000000006")],
)
def test_the_engines_own_id_is_a_text_where_no_field_is_named(name: str, document: str) -> None:
    with serving(CASES[name].engine()) as engine:
        hits = read(build(name, engine, id_field=None), "words", 1)
    assert [hit.document for hit in hits] == [document]


@pytest.mark.parametrize(
    ("distance", "sign"), [("Cosine", 1), ("Dot", 1), ("Euclid", -1), ("Manhattan", -1)]
)
def test_a_distance_of_qdrant_is_known_by_its_collection(distance: str, sign: int) -> None:
    named = {"config": {"params": {"vectors": {"v": {"distance": distance}}}}}
    plain = {"config": {"params": {"vectors": {"distance": distance}}}}
    assert source_sign(named, QdrantSource(using="v")) == source_sign(plain, QdrantSource()) == sign
    assert source_sign(named, QdrantSource(using="words", sparse=True)) == 1


@pytest.mark.parametrize("using", [None, "dens"])
def test_a_vector_that_qdrant_does_not_have_is_refused(using: str | None) -> None:
    legs = {"dense": {"using": using}}
    with serving(FakeQdrant()) as engine, pytest.raises(ConfigError, match="vectors: 'dense'"):
        read(build("qdrant", engine, legs=legs, fused=None), "dense", 2)


@pytest.mark.parametrize(
    ("code", "kind"), [(1, "server"), (8, "rate_limit"), (1100, "refused"), (65535, "refused")]
)
def test_an_error_of_milvus_says_whether_it_passes(code: int, kind: str) -> None:
    with serving(FakeMilvus()) as engine:
        engine.change = lambda _: {"code": code, "message": "no luck"}
        with pytest.raises(ProviderError, match=rf"code {code}: 'no luck'") as caught:
            read(build("milvus", engine), "words", 3)
    assert caught.value.kind == kind


def test_collections_that_are_not_there_or_have_no_hits() -> None:
    with serving(FakeMilvus()) as engine, pytest.raises(ProviderError, match="can't find"):
        read(build("milvus", engine, collection="other"), "words", 3)
    with serving(FakeChroma()) as engine, pytest.raises(ProviderError, match="404"):
        read(build("chroma", engine, collection="other"), "words", 3)
    with serving(FakeVespa()) as engine:
        engine.change = lambda answer: {"root": {**answer["root"], "children": []}}
        assert read(build("vespa", engine), "words", 3) == ()
        engine.change = lambda _: {"root": {"fields": {"totalCount": 0}}}
        assert read(build("vespa", engine), "words", 3) == ()
        engine.change = lambda _: {"root": {"fields": {"totalCount": 9}}}
        with pytest.raises(ProviderError, match="list of objects"):
            read(build("vespa", engine), "words", 3)


def test_columns_of_different_lengths_and_missing_vectors_are_refused() -> None:
    with serving(FakeChroma()) as engine:
        engine.change = lambda answer: {**answer, "ids": [["d1"]]}
        with pytest.raises(ProviderError, match="different lengths"):
            read(build("chroma", engine), "words", 3)
    with serving(FakeElasticsearch()) as engine:
        connector = build("elasticsearch", engine, text_field=None)
        with pytest.raises(ConfigError, match="set text_field"):
            read(connector, "words", 3, texts=True)
    settings = {"legs": {"other": {"vector_field": "v"}}, "fused": None}
    with serving(FakeElasticsearch()) as engine:
        connector = build("elasticsearch", engine, **settings)
        with pytest.raises(ConfigError, match=r"'q1' .*leg 'other'"):
            read(connector, "other", 3)


@pytest.mark.parametrize(
    ("row", "document"),
    [
        ({"id": "id:ns:type::a::b"}, "a::b"),
        ({"id": "id:ns:type:g=x:a"}, "a"),
        ({"id": "index:docs/0/ab12", "fields": {"documentid": "id:ns:type::a"}}, "a"),
        ({"id": "index:docs/0/ab12"}, None),
    ],
)
def test_the_id_of_vespa_is_what_the_user_chose(
    row: dict[str, object], document: str | None
) -> None:
    if document is not None:
        assert read_id(row) == document
        return
    with pytest.raises(ProviderError, match="set id_field"):
        read_id(row)


def test_keys_for_searches_alone_see_the_count() -> None:
    with serving(FakeAzure(admin=False)) as engine:
        first = ask(build("azure", engine), lambda session: session.read_fingerprint())
    assert first["configuration"] is None
    assert first["documents"] == 7

    class SearchOnly(FakeElasticsearch):
        def answer(self, path: str, body: Json) -> Json:
            if body is None and path != "/docs/_count":
                raise BadRequestError("security_exception")
            return super().answer(path, body)

    with serving(SearchOnly()) as engine:
        first = ask(build("elasticsearch", engine), lambda session: session.read_fingerprint())
    assert (first["version"], first["documents"]) == (None, 7)


def test_values_that_an_engine_sends_become_a_hit() -> None:
    assert str(Hit("a", 0.0).score) == "0.0"
    with serving(FakeChroma()) as engine:
        engine.change = lambda answer: {**answer, "scores": [[0.0] * len(answer["ids"][0])]}
        hits = read(build("chroma", engine), "words", 2)
    assert [str(hit.score) for hit in hits] == ["0.0", "0.0"]
    assert make_hit(7, 1) == Hit("7", 1.0)
    assert make_hit("ä b", -0.5, "text\ud800") == Hit("ä b", -0.5, "text?")
    unchecked = [Hit("a", 2.0), Hit("b", 1.0), Hit("a", math.nan)]
    assert check_hits(unchecked, 2) == tuple(unchecked[:2])


@pytest.mark.parametrize("count", ["7", True, [7], {"value": 7}])
@pytest.mark.parametrize("name", sorted(CASES))
def test_a_count_is_a_number_or_an_error(name: str, count: Json) -> None:
    engine = CASES[name].engine()
    plain = engine.answer

    def change(path: str, body: Json) -> Json:
        answer = plain(path, body)
        return json.loads(json.dumps(answer), object_hook=replace) if answer != 7 else count

    def replace(fields: Json) -> Json:
        names = {"count", "rowCount", "totalCount"} & fields.keys()
        return fields | dict.fromkeys((n for n in names if fields[n] == len(DOCUMENTS)), count)

    engine.answer = change  # type: ignore[method-assign]
    with serving(engine), pytest.raises(ProviderError, match="is no number") as caught:
        ask(build(name, engine), lambda session: session.read_fingerprint())
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize("part", ["failed", "total"])
def test_what_stands_in_place_of_a_count_of_shards_is_not_shown(part: str) -> None:
    shards = {"total": 2, "successful": 1, "skipped": 0, "failed": 1, part: "so many"}
    engine = FakeElasticsearch(change=lambda answer: answer | {"_shards": shards})
    with serving(engine), pytest.raises(ProviderError) as caught:
        read(build("elasticsearch", engine), "words", 2)
    assert str(caught.value) == f"malformed answer: _shards.{part} is no number"


# ── hits of an answer, and calls of libraries


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (None, "without an id"),
        ("", "without an id"),
        (True, "without an id"),
        (1.5, "without an id"),
        ("a\x00b", "control character"),
        ("a\ud800", "control character"),
        ("a\u2028b", "control character"),
        ("x" * 1001, "more than 1,000 characters"),
    ],
)
def test_an_id_that_cannot_be_stored_is_refused(document: object, problem: str) -> None:
    with pytest.raises(ProviderError, match=problem) as caught:
        make_hit(document, 1.0)
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, "1", None, True, [1], 10**400])
def test_a_score_that_is_no_finite_number_is_refused(score: object) -> None:
    with pytest.raises(ProviderError, match="no finite number"):
        make_hit("d", score)


@pytest.mark.parametrize("text", [1, ["a"], "x" * 1_000_001])
def test_a_text_that_is_none_or_too_long_is_refused(text: object) -> None:
    with pytest.raises(ProviderError, match="the text of 'd'"):
        make_hit("d", 1.0, text)


@pytest.mark.parametrize(
    ("hits", "problem"),
    [
        ([Hit("a", 1.0), Hit("a", 0.5)], "'a' appears twice"),
        ([Hit("a", math.nan)], "no finite number"),
        ([("a", 1.0)], "a tuple in place"),
        (None, "list of hits"),
        ("ab", "list of hits"),
        ({"a": 1.0}, "list of hits"),
    ],
)
def test_an_answer_that_breaks_a_rule_is_malformed(hits: object, problem: str) -> None:
    with pytest.raises(ProviderError, match=problem) as caught:
        check_hits(hits, 10)
    assert caught.value.kind == "malformed"


def test_answers_and_our_own_errors_pass() -> None:
    assert asyncio.run(call_library("Engine", lambda: 3, timeout=60)) == 3

    def fail() -> None:
        raise ConfigError("text_field is needed")

    with pytest.raises(ConfigError, match=r"^text_field is"):
        asyncio.run(call_library("Engine", fail, timeout=60))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("broken\n  at line 3"), "Engine: broken at line 3"),
        (KeyError(), "Engine: KeyError"),
        (ValueError("x" * 1000), f"Engine: {'x' * LONGEST_MESSAGE}"),
    ],
)
def test_whatever_a_library_raises_is_one_line(error: Exception, message: str) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(ProviderError) as caught:
        asyncio.run(call_library("Engine", fail, timeout=60))
    assert str(caught.value) == message
    assert caught.value.kind == "refused"


def test_a_call_that_takes_too_long_is_no_longer_waited_for() -> None:
    release = Event()

    async def ask() -> None:
        with pytest.raises(ProviderError, match=r"within 0\.01 seconds") as caught:
            await call_library("Engine", lambda: release.wait(60), timeout=0.01)
        assert caught.value.kind == "timeout"
        release.set()

    asyncio.run(ask())
