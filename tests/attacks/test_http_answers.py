"""Whatever a server answers ends as a failure with a kind, in one line; its size costs nothing."""

import asyncio
from collections.abc import Iterable

import pytest

from fusion_bench.errors import FusionBenchError, ProviderError
from fusion_bench.judging.llm_judge import SLOT, ConnectedJudge, GradeAnswer, JudgeModel, make_key
from fusion_bench.models.answer_stores import ScoreStore
from fusion_bench.models.chat_classifier import ChatClassifierClient, ConnectedClassifier
from fusion_bench.models.encoders import encoders
from fusion_bench.models.endpoints import PassageWriter, RetryRules
from fusion_bench.models.provider_session import ProviderChain, ProviderSession, RerankAnswer
from fusion_bench.models.rerank_config import RerankSettings
from fusion_bench.models.rerankers import HttpProvider, providers
from fusion_bench.util.http_client import open_client
from tests.attacks.hostile_server import HostileServer, Request, respond, serve_answers
from tests.attacks.http_answers import ANSWERS, DRIPS, MEGABYTE, HostileAnswer, plain_json

DOCUMENTS = ["alpha", "beta"]
#: Waits for a server that wants to be asked again are not what is tested.
SETTINGS = RerankSettings(strict=False, retry=RetryRules(attempts=1), timeout_ms=60_000)


def build(server: HostileServer, method: str = "jina", timeout: float = 60) -> HttpProvider:
    options = {"base_url": server.url, "key": None, "timeout": timeout}
    built = providers.build({"method": method, **options})
    assert isinstance(built, HttpProvider)
    return built


def ask_chain(provider: HttpProvider) -> RerankAnswer:
    async def ask() -> RerankAnswer:
        async with provider.open_reranker() as reranker:
            session = ProviderSession(reranker, SETTINGS, provider=provider)
            return await ProviderChain([session], SETTINGS).score_documents("q", DOCUMENTS)

    return asyncio.run(ask())


def check_failure(case: HostileAnswer, server: HostileServer, timeout: float = 60) -> None:
    provider = build(server, timeout=timeout)

    async def ask() -> None:
        async with provider.open_reranker() as reranker:
            session = ProviderSession(reranker, SETTINGS, provider=provider)
            await session.score_documents("q", DOCUMENTS)

    with pytest.raises(ProviderError) as caught:
        asyncio.run(ask())
    assert caught.value.kind == case.kind, caught.value
    check_message(str(caught.value), case)


def check_message(message: str, case: HostileAnswer) -> None:
    assert case.says in message
    assert len(message) < 400
    assert message.isprintable()


@pytest.mark.parametrize("case", ANSWERS, ids=str)
def test_an_answer_fails_as_its_kind(case: HostileAnswer, caplog: pytest.LogCaptureFixture) -> None:
    """As a run does, which logs the failure and keeps the fused order."""
    with serve_answers(case.pieces) as server:
        answer = ask_chain(build(server))
    # What the sockets hold on both sides is sent as well.
    assert server.sent < 16 * MEGABYTE
    if case.kind is not None:
        assert [kind for _, kind in answer.failures] == [case.kind]
        (message,) = caplog.messages
        check_message(message, case)
    else:
        assert answer.scores == (0.5, 0.5)
        assert len(answer.provider_label) <= 210
        assert answer.provider_label.isprintable()
        answer.provider_label.encode()


@pytest.mark.parametrize("case", DRIPS, ids=str)
def test_a_request_has_a_limit_of_its_time(case: HostileAnswer) -> None:
    with serve_answers(case.pieces) as server:
        check_failure(case, server, timeout=0.2)


@pytest.mark.parametrize("case", [DRIPS[0], *ANSWERS[:2]], ids=str)
def test_the_model_of_a_server_is_asked_within_the_same_limits(case: HostileAnswer) -> None:
    async def connect(server: HostileServer) -> None:
        async with build(server, "tei", timeout=0.2 if case in DRIPS else 60).open_reranker():
            pass

    with serve_answers(case.pieces) as server, pytest.raises(ProviderError) as caught:
        asyncio.run(connect(server))
    assert caught.value.kind == case.kind
    assert server.sent < 16 * MEGABYTE


VECTORS: list[tuple[str, object]] = [
    ("a number of 400 digits", [[10**400], [1.0]]),
    ("a number above 32 bits", [[1e300], [1.0]]),
    ("lengths that differ", [[1.0], [1.0, 2.0]]),
    ("words", [["a"], ["b"]]),
    ("no list", {"a": 1}),
    ("too few", [[1.0]]),
    ("booleans in lists", [[[True]], [[False]]]),
    ("nothing in them", [[], []]),
]


@pytest.mark.parametrize(("name", "vectors"), VECTORS, ids=[name for name, _ in VECTORS])
def test_vectors_that_are_none(name: str, vectors: object) -> None:
    def answer(request: Request) -> Iterable[bytes]:
        return plain_json({"model_id": name} if request.path == "/info" else vectors)

    async def ask(server: HostileServer) -> None:
        encoder = encoders.build({"method": "tei", "base_url": server.url})
        async with encoder.open_model() as model:
            await model.answer(DOCUMENTS)

    with serve_answers(answer) as server, pytest.raises(ProviderError) as caught:
        asyncio.run(ask(server))
    assert caught.value.kind == "malformed"


MESSAGES: list[tuple[str, str]] = [
    ("half a surrogate", '{"type": "local", "confidence": 0.5, "entities": ["\\ud800"]}'),
    ("a key twice", '{"type": "local", "type": "global", "confidence": 0.5}'),
    ("a confidence of 400 digits", f'{{"type": "local", "confidence": {10**400}}}'),
    ("a confidence that is none", '{"type": "local", "confidence": NaN}'),
    ("brackets", "{" + '"a":[' * 19_000 + "}"),
    ("a long one", "{" + "x" * 200_000 + "}"),
    ("numbers", f"[{'1' * 5_000}] 8, {'1' * 5_000}. 8, " + "a" * 90_000),
]


@pytest.mark.parametrize(("name", "message"), MESSAGES, ids=[name for name, _ in MESSAGES])
def test_messages_of_a_language_model(name: str, message: str) -> None:
    """Taken or refused as malformed by the classifier, the writer, the reranker and the judge."""

    def answer(_: Request) -> Iterable[bytes]:
        return plain_json({"choices": [{"message": {"content": message}}], "usage": {}})

    async def classify(url: str) -> None:
        client = ChatClassifierClient(model="m", base_url=url, key=None)
        async with open_client(url, client) as remote:
            await ConnectedClassifier(client, remote, ScoreStore()).score("q", ())

    async def write(url: str) -> None:
        writer = PassageWriter(model="m", base_url=url, key=None)
        async with writer.open_model() as model:
            (await model.answer(["q"])).values[0].decode()

    async def rerank(url: str) -> None:
        chat = providers.build({"method": "chat", "model": "m", "base_url": url, "key": None})
        async with chat.open_reranker() as reranker:
            assert len((await reranker.score("q", DOCUMENTS)).scores) == 2

    async def judge(url: str) -> None:
        model = JudgeModel(model="m", base_url=url, key=None)
        store, key = ScoreStore(), make_key("prompt", 1, 1)
        async with open_client(url, model) as remote:
            judging = ConnectedJudge(model, remote, store, (0, 1))
            assert (await judging.score(key, SLOT)).unread == (0,), "no such message is a grade"
        problem = GradeAnswer.from_json(store.read_answer(model.model_identity, key))
        assert problem.problem == "malformed"
        assert len(problem.reason) < 300
        problem.reason.encode()

    failures: list[ProviderError] = []
    with serve_answers(answer) as server:
        for ask in (classify, write, rerank, judge):
            try:
                asyncio.run(ask(server.url))
            except ProviderError as error:
                failures.append(error)
    assert {error.kind for error in failures} <= {"malformed"}, name
    assert max((len(str(error)) for error in failures), default=0) < 200


def test_a_body_as_long_as_the_request_allows_is_read() -> None:
    """A server that sends the documents back has four bytes for each that it got."""
    documents = ["\u3042" * 300_000]

    def answer(request: Request) -> Iterable[bytes]:
        row = {"index": 0, "relevance_score": 0.5, "document": request.body["documents"][0]}
        return plain_json({"results": [row]})

    async def ask(server: HostileServer) -> tuple[float, ...]:
        async with build(server).open_reranker() as reranker:
            return (await reranker.score("q", documents)).scores

    with serve_answers(answer) as server:
        assert asyncio.run(ask(server)) == (0.5,)


def test_a_url_that_no_client_takes_is_refused() -> None:
    for url in ("http://h:0x1", "http://h:0", "http://[::1", "http://a b", "http://a\x00b"):
        with pytest.raises(FusionBenchError, match="base_url"):
            providers.build({"method": "jina", "base_url": url})


def test_an_empty_response_of_a_good_status_is_malformed() -> None:
    with serve_answers(lambda _: respond(b"", status="204 No Content")) as server:
        check_failure(HostileAnswer("", lambda _: [], "malformed"), server)
