"""No piece of a key that a server sends back is shown, logged or stored, in any form."""

import asyncio
import json
import logging
import traceback
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.judging.llm_judge import SLOT, ConnectedJudge, JudgeModel, make_key
from fusion_bench.models.answer_stores import ScoreStore
from fusion_bench.models.chat_classifier import ChatClassifierClient, ConnectedClassifier
from fusion_bench.models.encoders import encoders
from fusion_bench.models.endpoints import PassageWriter
from fusion_bench.models.reranker_protocol import Reranker
from fusion_bench.models.rerankers import providers
from fusion_bench.serving.live.pipeline import Pipeline
from fusion_bench.util.api_keys import HIDDEN, ApiKey, SecretMatcher, hide_key
from fusion_bench.util.http_client import JsonClient, open_client
from tests.attacks import hostile_engines
from tests.attacks.attack import Attack
from tests.attacks.hostile_server import Request, respond, serve_answers
from tests.attacks.http_answers import plain_json
from tests.attacks.http_echoes import FORMS, KEY, PLACES
from tests.attacks.runner import run_attack
from tests.models.rerank.collection import make

VARIABLE = "ECHO_API_KEY"
#: Characters in a row that must not be shown.
PIECE = 6
STEP = 3


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)


def pieces_of(text: str) -> set[str]:
    return {text[i : i + PIECE].lower() for i in range(len(text) - PIECE + 1)}


def assert_hidden(shown: str, echo: str) -> None:
    """Neither the key nor its echo is shown, not even with what separates its letters left out."""
    letters = "".join(filter(str.isalnum, KEY))
    plain = "".join(filter(str.isalnum, shown)).lower()
    for text in (shown.lower(), plain):
        for piece in pieces_of(KEY) | pieces_of(KEY[::-1]) | pieces_of(letters):
            assert piece not in text, (piece, shown)
    # Its ends may be words of the form, such as "&#115;".
    assert echo[len(echo) // 4 : 3 * len(echo) // 4] not in shown


async def ask(reranker: Reranker) -> str:
    """All that a call leaves behind: its error with the traceback, or the model that it names."""
    try:
        reply = await reranker.score("q", ["a", "b"])
    except ProviderError as error:
        return "".join(traceback.format_exception(error))
    return f"{reply.model} {reranker.identity}"


def open_provider(url: str) -> AbstractAsyncContextManager[Reranker]:
    return providers.build({"method": "jina", "base_url": url, "key": VARIABLE}).open_reranker()


@pytest.mark.parametrize("place", PLACES)
def test_an_echo_is_not_shown(place: str, caplog: pytest.LogCaptureFixture) -> None:
    """At level DEBUG httpx logs headers, reasons and errors; each place gets every third form."""
    caplog.set_level(logging.DEBUG)
    first = list(PLACES).index(place)
    forms = list(FORMS.values())[first % STEP :: STEP]
    echo = ""

    def answer(request: Request) -> Iterable[bytes]:
        assert request.key == KEY
        return PLACES[place](request, echo)

    async def try_forms(url: str) -> None:
        nonlocal echo
        async with open_provider(url) as reranker:
            for form in forms:
                echo = form(KEY)
                caplog.clear()
                assert_hidden(await ask(reranker) + caplog.text, echo)

    with serve_answers(answer) as server:
        asyncio.run(try_forms(server.url))
    assert len(server.requests) == len(forms)


def test_what_does_not_resemble_the_key_is_quoted() -> None:
    """An error page is what a user needs to mend a request."""
    page = "model 'rerank-2' is not available in your region; request id 4f1c-9a70-88de-2b31"

    async def go(url: str) -> str:
        async with open_provider(url) as reranker:
            return await ask(reranker)

    with serve_answers(lambda _: respond(page.encode(), status="403 No")) as server:
        assert page in asyncio.run(go(server.url))


def test_other_clients_show_and_store_no_echo(tmp_path: Path) -> None:
    """Passages and entities are stored: only the pieces of the key are missing there."""
    message = f"A passage about {KEY[:12]} and {KEY[::-1]}, and more."
    entity = json.dumps({"type": "local", "confidence": 1, "entities": [message]})

    def answer(request: Request) -> Iterable[bytes]:
        if request.path == "/info":
            return plain_json({"model_id": message})
        is_passage = "passage" in request.body["messages"][0]["content"]
        content = message if is_passage else entity
        return plain_json({"model": message, "choices": [{"message": {"content": content}}]})

    async def go(url: str) -> str:
        options = {"model": "m", "base_url": url, "key": VARIABLE}
        async with PassageWriter(**options).open_model() as model:
            (passage,) = (await model.answer(["q"])).values
        store = ScoreStore(tmp_path / "s.sqlite")
        client = ChatClassifierClient(**options)
        async with open_client(url, client) as remote:
            reply = await ConnectedClassifier(client, remote, store).score("q", ())
        stored = store.read_answer(client.model_identity, "q") or ""
        judge = JudgeModel(**options)
        key = make_key("prompt", 1, 1)
        async with open_client(url, judge) as remote:
            judging = ConnectedJudge(judge, remote, store, (0, 1))
            texts = f"{await judging.score(key, SLOT)}"
        texts += store.read_answer(judge.model_identity, key) or ""
        assert "malformed" in texts
        assert_hidden(texts, KEY)
        store.close()
        encoder = encoders.build({"method": "tei", "base_url": url, "key": VARIABLE})
        async with encoder.open_model() as model:
            identity = model.identity
        return f"{passage.decode()} {stored} {reply.model} {identity}"

    with serve_answers(answer) as server:
        shown = asyncio.run(go(server.url))
    assert_hidden(shown, KEY)
    assert shown.count("A passage about") == 2
    assert shown.count("and more.") == 2


SECRET_OPTIONS: list[tuple[str, ...]] = [
    (f"key={KEY}",),
    (f"key=[{KEY}]",),
    (f"key={{a: {KEY}}}",),
    (f"key={KEY}{{",),
    (f'key="{KEY} "',),
    ("key=hf_QmFzZTY0Zx9v7LrT2wNp8Hd",),
    ("key=AKIAQMFZZTY0ZX9V7LRT",),
    (f"base_url=http://me:{KEY}@host",),
    (f"base_url=http://{KEY}@host",),
    (f"base_url=ftp://me:{KEY}@host",),
    (f"base_url=http://host?key={KEY}",),
    (f"base_url=http://host#{KEY}",),
]


@pytest.mark.parametrize("options", SECRET_OPTIONS, ids=str)
def test_a_key_in_an_option_is_refused_and_not_printed(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    make(tmp_path)
    words = [word for option in options for word in ("--set", option)]
    start = ("rerank", "--dataset", "tiny", "--system", "rrf", "--provider", "jina")
    hidden = {"QmFzZTY0Zx9v7LrT2wNp8Hd", "AKIAQMFZZTY0ZX9V7LRT", KEY[:PIECE], KEY[-PIECE:]}
    attack = Attack(
        "key", (*start, *words, "--store", "s.sqlite"), never=tuple(hidden), writes=("s.sqlite",)
    )
    run_attack(attack, tmp_path)


CONFIGS: Mapping[str, str] = {
    "a list": f"providers: {{a: {{method: jina, key: [{KEY}]}}}}\nchain: [a]\n",
    "the key": f"providers: {{a: {{method: jina, key: {KEY}}}}}\nchain: [a]\n",
    "a mapping": f"providers: {{a: {{method: jina, key: {{b: {KEY}}}}}}}\nchain: [a]\n",
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_key_in_a_file_is_refused_and_not_printed(config: str, tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "c.yaml").write_text(config, encoding="utf-8")
    words = ("rerank", "--dataset", "tiny", "--system", "rrf", "--config", "c.yaml")
    run_attack(Attack("key", words, never=(KEY[:PIECE], KEY[-PIECE:])), tmp_path)


def test_a_variable_that_is_not_set_is_named_if_it_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(ConfigError, match=VARIABLE):
        ApiKey.from_environment(VARIABLE)


@pytest.mark.parametrize("form", FORMS)
def test_a_redacted_text_shows_no_key(form: str) -> None:
    matcher = SecretMatcher(KEY)
    echo = FORMS[form](KEY)
    text = f"before {echo} after"
    assert matcher.is_shown_in(text)
    assert not matcher.is_shown_in("before after")
    assert matcher.redact_text("before, after") == "before, after"


@pytest.mark.parametrize("form", hostile_engines.FORMS)
@pytest.mark.parametrize("piece", [KEY, KEY[3:11], KEY[-8:]], ids=["whole", "eight", "last eight"])
def test_no_form_of_eight_characters_is_kept(form: str, piece: str) -> None:
    key, echo = ApiKey(KEY, name=VARIABLE), hostile_engines.FORMS[form](piece)
    answer = {"a": [f"before {echo} after", 1.5, 7, None], f"x{echo}": "calm sea"}
    hidden = json.dumps(hide_key(answer, key))
    assert_hidden(hidden, echo)
    assert "calm sea" in hidden
    honest = {"a": ["the sea", "4f1c9a70-88de-4b31-9a52-0c5d7e6f8a91"], "b": {"c": 10**9}}
    assert hide_key(honest, key) is honest


def test_a_number_may_be_the_key() -> None:
    digits = ApiKey("8412230957", name="A")
    assert hide_key({"count": 8412230957, "n": 7, "x": 0.5}, digits) == {
        "count": HIDDEN, "n": 7, "x": 0.5
    }  # fmt: skip


@pytest.mark.parametrize("short", ["EMPTY", "ollama", "abc1234"])
@pytest.mark.parametrize("name", ["judge", "classify", "rerank chat", "rerank jina", "pull http"])
def test_a_key_that_is_too_short_is_refused_before_the_first_call(
    name: str, short: str, tmp_path: Path
) -> None:
    asked: list[str] = []
    said = hostile_engines.ask_server(
        hostile_engines.CLIENTS[name], tmp_path, short, lambda path, _: asked.append(path)
    )
    assert f"has {len(short)} characters, " in said
    assert "key: null" in said
    assert not asked


def test_a_live_pipeline_does_not_open_with_a_key_that_is_too_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "ollama")
    chat = {"method": "chat", "model": "m", "base_url": "http://127.0.0.1:1", "key": VARIABLE}
    blend = {"method": "replace", "reranker": "llm"}
    pipeline = Pipeline({"runs": ["a"], "blend": blend}, rerankers={"llm": chat})
    with pytest.raises(ConfigError, match="at least 8"), pipeline:
        pass


@pytest.mark.parametrize(
    ("url", "is_refused"),
    [
        ("http://elsewhere.example", True),
        ("HTTP://10.0.0.1:9200/", True),
        ("http://localhost.elsewhere.example", True),
        ("http://[fe80::1]", True),
        ("https://elsewhere.example", False),
        ("http://localhost:1", False),
        ("http://127.3.2.1", False),
        ("http://[::1]:9", False),
    ],
)
def test_a_key_goes_to_another_machine_by_https_alone(url: str, *, is_refused: bool) -> None:
    async def go(*, key: ApiKey | None, allow_http: bool) -> None:
        await JsonClient(url, key=key, timeout=1, allow_http=allow_http).close()

    asyncio.run(go(key=ApiKey(KEY, name=VARIABLE), allow_http=True))
    asyncio.run(go(key=None, allow_http=False))
    if not is_refused:
        return asyncio.run(go(key=ApiKey(KEY, name=VARIABLE), allow_http=False))
    with pytest.raises(ConfigError, match=f"{VARIABLE} .*clear.*allow_http"):
        asyncio.run(go(key=ApiKey(KEY, name=VARIABLE), allow_http=False))
    return None


@pytest.mark.parametrize(
    "name", ["elasticsearch", "qdrant", "weaviate", "vespa", "azure", "chroma"]
)
def test_a_key_as_a_document_or_its_text_is_an_error(name: str, tmp_path: Path) -> None:
    """Without it, it would be another document."""
    for number, known in enumerate(("d1", "red apple pie")):
        folder = tmp_path / str(number)
        folder.mkdir()

        def change(_: str, answer: object, known: str = known) -> object:
            return json.loads(json.dumps(answer).replace(known, f"{known} {KEY}"))

        client = hostile_engines.CLIENTS[f"pull {name}"]
        said = hostile_engines.ask_server(client, folder, KEY, change)
        assert said.startswith("2"), said
        assert "the API key" in said
        hostile_engines.assert_hidden(said, KEY, KEY)
