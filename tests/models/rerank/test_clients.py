"""Every dialect against a server that checks what it gets."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, FailureKind, ProviderError
from fusion_bench.models.provider_session import ProviderSession, RerankAnswer
from fusion_bench.models.rerank_config import RerankSettings
from fusion_bench.models.reranker_protocol import (
    Identity,
    Reply,
    Usage,
    check_reply,
    rows_to_scores,
)
from fusion_bench.models.rerankers import Price, Provider, providers
from fusion_bench.models.rerankers._base import HttpProvider
from tests.models.rerank.server import SHAPES, Loopback, plain_score, serving

KEY = "sk-test-0123456789abcdef"
DOCUMENTS = ["alpha", "beta", "gamma"]
MODELS = {"infinity": "m", "vllm": "m", "chat": "m"}
DEFAULT_MODELS = {
    "cohere": "rerank-multilingual-v3.0",
    "voyage": "rerank-2",
    "jina": "jina-reranker-v2-base-multilingual",
}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RERANK_TEST_KEY", KEY)


def provider(state: Loopback, **options: object) -> HttpProvider:
    given: dict[str, Any] = {"method": state.dialect, "base_url": state.url, "timeout": 5}
    if state.dialect in MODELS:
        given["model"] = MODELS[state.dialect]
    given["key"] = "RERANK_TEST_KEY" if state.key else None
    built = providers.build({**given, **options})
    assert isinstance(built, HttpProvider)
    return built


def ask(asked: Provider, query: str, documents: Sequence[str]) -> tuple[Reply, Identity]:
    async def go() -> tuple[Reply, Identity]:
        async with asked.open_reranker() as reranker:
            return await reranker.score(query, documents), reranker.identity

    return asyncio.run(go())


def ask_session(asked: HttpProvider, documents: Sequence[str]) -> RerankAnswer:
    async def go() -> RerankAnswer:
        async with asked.open_reranker() as reranker:
            session = ProviderSession(reranker, RerankSettings(), provider=asked)
            return await session.score_documents("q", documents)

    return asyncio.run(go())


def failure(state: Loopback, **options: object) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        ask(provider(state, **options), "q", DOCUMENTS)
    return caught.value


@pytest.mark.parametrize("dialect", SHAPES)
def test_each_dialect_is_spoken_as_it_is_documented(dialect: str) -> None:
    with serving(Loopback(dialect, key=KEY if SHAPES[dialect].wants_key else None)) as state:
        asked = provider(state)
        reply, identity = ask(asked, "what", DOCUMENTS)
    assert state.complaints == []
    assert reply.scores == pytest.approx(plain_score("what", DOCUMENTS), abs=1e-4)
    assert identity.endpoint == state.url + SHAPES[dialect].path
    assert reply.unread == ()
    assert state.requests[0].get("model") == DEFAULT_MODELS.get(dialect, asked.model or None)
    if dialect == "tei":
        assert (reply.model, identity.model) == (None, "resolved-model@abc")
        assert reply.usage == Usage()
    elif dialect.startswith("cohere"):
        assert (reply.model, reply.usage) == (None, Usage(searches=1))
    elif dialect == "chat":
        assert (reply.model, reply.usage) == ("resolved-model", Usage(0, 21, 3))
    else:
        assert (reply.model, reply.usage) == ("resolved-model", Usage(searches=1, tokens=15))


@pytest.mark.parametrize(
    ("dialect", "field", "unit"),
    [
        ("tei", "raw_scores", False),
        ("infinity", "raw_scores", False),
        ("vllm", "use_activation", True),
    ],
)
def test_logits_are_asked_for_where_they_are_declared(dialect: str, field: str, unit: bool) -> None:
    logit = Loopback(dialect, score=lambda _, documents: [-9.5 + i for i in range(len(documents))])
    with serving(logit) as state:
        reply, _ = ask(provider(state, space="logit"), "q", DOCUMENTS)
        assert state.requests[0][field] is not unit
        raw, identity = ask(provider(state), "q", DOCUMENTS)
        with pytest.raises(ProviderError, match="score space 'unit'"):
            check_reply(raw, 3, identity)
        assert state.requests[1][field] is unit
    assert reply.scores == (-9.5, -8.5, -7.5)


@pytest.mark.parametrize("most", [1, 2, 3, 32])
def test_what_is_too_large_is_halved(most: int) -> None:
    documents = [f"d{i}" for i in range(7)]
    with serving(Loopback("tei", most=most)) as state:
        answer = ask_session(provider(state), documents)
    assert list(answer.scores or ()) == plain_score("q", documents)
    assert all(count == 1 for count in state.paid.values())


def test_one_document_that_is_too_large_is_an_error() -> None:
    with serving(Loopback("tei", most=0)) as state:
        assert failure(state).kind == "too_large"


def test_a_model_that_changes_between_halves_is_asked_again() -> None:
    state = Loopback("jina", most=2)
    names = iter(["one", "two"])
    state.score = lambda query, documents: (
        setattr(state, "model", next(names, "two")) or plain_score(query, documents)  # type: ignore[func-returns-value]
    )
    with serving(state):
        answer = ask_session(provider(state), DOCUMENTS)
    assert answer.identity is not None
    assert answer.identity.model == "two"
    assert state.paid == {("q", "alpha"): 2, ("q", "beta"): 2, ("q", "gamma"): 1}


FAILURES: list[tuple[str, FailureKind]] = [
    ("close", "connection"),
    ("hang", "timeout"),
    ("429 retry-after=7", "rate_limit"),
    ("500", "server"),
    ("424", "server"),
    ("400", "refused"),
    ("403", "refused"),
    ("302 location=http://example.invalid/", "refused"),
    ("text", "malformed"),
    ("text {}", "malformed"),
    ("text []", "malformed"),
    ("text 1" + "1" * 5000, "malformed"),
    ("text " + "[" * 9000, "malformed"),
]


@pytest.mark.parametrize("dialect", ["cohere", "tei", "chat"])
@pytest.mark.parametrize(("how", "kind"), FAILURES, ids=lambda value: str(value)[:20])
def test_each_failure_is_told_from_the_others(dialect: str, how: str, kind: FailureKind) -> None:
    with serving(Loopback(dialect, fail=lambda _: how)) as state:
        error = failure(state, timeout=0.3 if how == "hang" else 60)
    assert error.kind == kind
    assert error.retry_after == (7 if kind == "rate_limit" else None)
    assert len(str(error)) < 400


@pytest.mark.parametrize("dialect", [name for name in SHAPES if name != "chat"])
def test_a_missing_result_is_malformed(dialect: str) -> None:
    with serving(Loopback(dialect, fail=lambda _: "drop")) as state:
        error = failure(state)
    assert error.kind == "malformed"
    assert "2 results for 3 documents" in str(error)


def test_a_wrong_key_is_named_but_not_shown() -> None:
    with serving(Loopback("cohere", key="sk-another-key-entirely")) as state:
        error = failure(state)
    assert error.kind == "refused"
    assert "RERANK_TEST_KEY" in str(error)
    assert "(not shown" in str(error)  # the server sent it back
    assert KEY not in str(error)
    with serving(Loopback("tei", key="sk-another-key-entirely")) as state:
        assert "status 401" in str(failure(state, key=None))


@pytest.mark.parametrize("value", ["", "  ", "half key", "schlüssel", "a\x07b"])
def test_a_missing_or_impossible_key_is_refused(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("RERANK_TEST_KEY", value)
    state = Loopback("jina", key="k", url="http://127.0.0.1:1")
    with pytest.raises(ConfigError, match="RERANK_TEST_KEY"):
        ask(provider(state), "q", DOCUMENTS)


@pytest.mark.parametrize(
    "url",
    ["ftp://a", "a.b", "http://", "https://u:p@a", "https://k@a", "http://a?key=b", "http://a#b"],
)
def test_a_base_url_holds_no_secret(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        providers.build({"method": "jina", "base_url": url})


# ── what every answer must be


@pytest.mark.parametrize(
    "rows",
    [
        None,
        {},
        [1],
        [{"index": 0}],
        [{"index": "0", "s": 1.0}],
        [{"index": True, "s": 1.0}],
        [{"index": 0, "s": True}],
        [{"index": 0, "s": "1"}],
        [{"index": 2, "s": 1.0}],
        [{"index": -1, "s": 1.0}],
        [{"index": 0, "s": 1.0}, {"index": 0, "s": 1.0}],
    ],
    ids=json.dumps,
)
def test_rows_that_are_no_scores(rows: object) -> None:
    with pytest.raises(ProviderError, match="malformed answer") as caught:
        rows_to_scores(rows, 2, "s")
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize(
    ("space", "scores", "good"),
    [
        ("unit", (0.0, 1.0), True),
        ("unit", (0.0, 1.0000001), True),
        ("unit", (0.0, 1.1), False),
        ("unit", (-0.1, 1.0), False),
        ("unit", (0.5,), False),
        ("logit", (-11.0, 12.0), True),
        ("logit", (float("nan"), 1.0), False),
        ("unbounded", (float("inf"), 1.0), False),
        ("log_prob", (-3.0, 0.0), True),
        ("log_prob", (-3.0, 0.5), False),
    ],
)
def test_scores_lie_in_their_space(
    space: ScoreSpace, scores: tuple[float, ...], good: bool
) -> None:
    identity = Identity("p", "m", space)
    if good:
        checked = check_reply(Reply(scores), 2, identity).scores
        assert all(0 <= s <= 1 for s in checked) or space != "unit"
        return
    with pytest.raises(ProviderError) as caught:
        check_reply(Reply(scores), 2, identity)
    assert caught.value.kind == "malformed"


def test_positions_that_no_document_has_and_prices_of_the_user() -> None:
    with pytest.raises(ProviderError, match="unread positions"):
        check_reply(Reply((0.5,), unread=(1,)), 1, Identity("p", "m", "unit"))
    price = Price(per_1000_searches=2, per_million_tokens=0.5, per_million_output_tokens=4)
    assert price.cost_of(Usage(3, 1_000_000, 500_000)) == pytest.approx(0.006 + 0.5 + 2)
    assert providers.build("cohere").price is None
    assert providers.build("tei").price == Price()


@pytest.mark.parametrize(
    ("method", "documents", "usage"),
    [
        ("cohere", ["a"] * 101, Usage(searches=2)),
        ("voyage", ["one two", "three"], Usage(searches=1, tokens=(1 + 2) + (1 + 2))),
        ("jina", ["a"] * 101, Usage(searches=1, tokens=202)),
        ("noop", ["a"], Usage(tokens=2)),
        ({"method": "chat", "model": "m"}, ["a", "b"], Usage(tokens=100, output_tokens=6)),
    ],
)
def test_estimates_before_anything_is_spent(
    method: object, documents: list[str], usage: Usage
) -> None:
    found = providers.build(method).estimate_usage("q", documents)
    assert (found.searches, found.output_tokens) == (usage.searches, usage.output_tokens)
    assert found.tokens == pytest.approx(usage.tokens, rel=0.2)
