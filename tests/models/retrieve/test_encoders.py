"""Encoders against a real server: requests, retries, what is stored, what is refused."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusion_bench.errors import ConfigError, ProviderError, UnknownNameError
from fusion_bench.models.answer_stores import AnswerStore
from fusion_bench.models.encoders import TextEncoder, encoders
from fusion_bench.models.retrievers.dense import embed_texts
from tests.models.rerank.server import closed_port
from tests.models.retrieve.server import ModelServer, serving, word_vector

KEY = "sk-embed-0123456789"
TEXTS = ["a storm", "two cards", " ", "a storm", "lantern light"]


def encoder(state: ModelServer, kind: str = "openai", **options: object) -> TextEncoder:
    given: dict[str, Any] = {"method": kind, "wait": 0.0, **options}
    if kind == "openai":
        given |= {"model": "m", "base_url": f"{state.url}/v1", "key": "EMBED_TEST_KEY"}
    else:
        given |= {"base_url": state.url}
    return encoders.build(given)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBED_TEST_KEY", KEY)


def unit(text: str) -> list[float]:
    vector = np.array(word_vector(text)) if text.strip() else np.zeros(16)
    norm = np.linalg.norm(vector)
    return [float(x) for x in vector / (norm or 1)]


@pytest.mark.parametrize("kind", ["openai", "tei"])
def test_vectors_are_of_length_one_and_paid_for_once(kind: str, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    with serving(ModelServer(key=KEY if kind == "openai" else None)) as state:
        store = AnswerStore(tmp_path / "s.sqlite")
        model = encoder(state, kind, batch=2)
        vectors, usage = embed_texts(
            model, TEXTS, "document", store, lambda *step: steps.append(step)
        )
        again, known = embed_texts(model, TEXTS[::-1], "document", store)
    np.testing.assert_allclose(vectors, [unit(text) for text in TEXTS], atol=1e-6)
    np.testing.assert_array_equal(again, vectors[::-1])
    assert dict(state.paid) == {"a storm": 1, "two cards": 1, "lantern light": 1}
    assert (usage.stored, usage.asked, usage.calls) == (0, 3, 2)
    assert (known.stored, known.asked, known.calls) == (3, 0, 0)
    assert usage.tokens == (6 if kind == "openai" else 0)
    assert steps[0] == (0, 3)
    assert steps[-1] == (3, 3)


def test_requests_are_as_documented_with_prefixes_by_kind() -> None:
    store = AnswerStore()
    with serving(ModelServer()) as state:
        embed_texts(encoder(state, dimensions=16), ["x"], "query", store)
        embed_texts(encoder(state, "tei"), ["x"], "query", store)
    assert state.requests == [
        (
            "/v1/embeddings",
            {"model": "m", "input": ["x"], "encoding_format": "float", "dimensions": 16},
        ),
        ("/embed", {"inputs": ["x"], "truncate": True, "normalize": True}),
    ]
    with serving(ModelServer()) as state:
        model = encoder(state, "tei", query_prefix="query: ", document_prefix="passage: ")
        embed_texts(model, ["x"], "query", AnswerStore())
        embed_texts(model, ["x"], "document", AnswerStore())
    assert [body["inputs"] for _, body in state.requests] == [["query: x"], ["passage: x"]]


def test_batches_are_split_and_another_model_is_asked_again() -> None:
    store = AnswerStore()
    with serving(ModelServer()) as state:
        for state.model in ("one", "another", "another"):
            embed_texts(encoder(state, "tei"), ["x"], "query", store)
    assert state.paid["x"] == 2
    texts = [f"word{n}" for n in range(9)]
    with serving(ModelServer(most=2)) as state:
        vectors, _ = embed_texts(encoder(state, "tei", batch=9), texts, "query", AnswerStore())
    np.testing.assert_allclose(vectors, [unit(text) for text in texts], atol=1e-6)
    assert set(state.paid.values()) == {1}


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(status: int) -> None:
    with serving(ModelServer(fail=lambda n: status if n < 2 else None)) as state:
        _, usage = embed_texts(encoder(state, "tei"), ["x"], "query", AnswerStore())
    assert usage.calls == 1
    assert len(state.requests) == 3


def test_what_came_before_a_failure_is_stored(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path / "s.sqlite")
    texts = [f"word{n}" for n in range(8)]
    with serving(ModelServer(fail=lambda n: None if n < 2 else 400)) as state:
        model = encoder(state, "tei", batch=2, concurrency=1)
        with pytest.raises(ProviderError, match=r"status 400.*4 of 8 "):
            embed_texts(model, texts, "query", store)
        state.fail = lambda _: None
        embed_texts(model, texts, "query", store)
    assert dict(state.paid) == dict.fromkeys(texts, 1)


CHANGES: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "one lacks": ("tei", lambda said: said[:-1], "1 embeddings for 2 texts"),
    "no list": ("tei", lambda _: {}, "no embeddings for 2 texts"),
    "ragged": ("tei", lambda said: [said[0], said[1][:3]], "no lists of numbers of one length"),
    "texts": ("tei", lambda _: [["x"], ["y"]], "no lists of numbers"),
    "flat": ("tei", lambda _: [1.0, 2.0], r"shape \(2,\)"),
    "empty": ("tei", lambda _: [[], []], r"shape \(2, 0\)"),
    "NaN": ("tei", lambda said: [said[0], [float("nan")] * 16], "NaN and Infinity are not JSON"),
    "no data": ("openai", lambda _: {"error": 1}, "0 embeddings for 2 texts"),
    "index twice": ("openai", lambda said: {"data": [said["data"][0]] * 2}, "1 embeddings for 2"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_answer_that_makes_no_sense_is_refused(name: str) -> None:
    kind, change, message = CHANGES[name]
    store = AnswerStore()
    with serving(ModelServer(change=change)) as state:
        model = encoder(state, kind)
        with pytest.raises(ProviderError, match=message) as caught:
            embed_texts(model, ["x", "y"], "query", store)
    assert caught.value.kind == "malformed"
    assert len(state.requests) == 1


def test_what_is_wrong_with_a_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownNameError, match="mean 'minilm'"):
        encoders.build("minilmm")
    with pytest.raises(ConfigError, match="model: is required"):
        encoders.build("openai")
    with pytest.raises(ConfigError, match=r"base_url .*http://"):
        encoders.build({"method": "tei", "base_url": "localhost"})
    monkeypatch.delenv("EMBED_TEST_KEY")
    with pytest.raises(ConfigError, match="EMBED_TEST_KEY"):
        embed_texts(encoder(ModelServer(url="http://127.0.0.1:1")), ["x"], "query", AnswerStore())


def test_nobody_listens() -> None:
    model = encoder(ModelServer(url=closed_port()), "tei", attempts=2)
    with pytest.raises(ProviderError) as caught:
        embed_texts(model, ["x"], "query", AnswerStore())
    assert caught.value.kind == "connection"


def test_minilm_is_built_in(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path / "s.sqlite")
    texts = ["The storm moves a ship.", "A gale pushes the boat.", "Bake the cake."]
    vectors, usage = embed_texts(encoders.build("minilm"), texts, "document", store)
    assert vectors.shape == (3, 384)
    assert usage.calls == 1
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > 0.4 > cosines[0, 2]


def test_a_file_that_is_no_answer_store(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    path.write_text("not a database, but some text that is long enough", encoding="utf-8")
    with pytest.raises(Exception, match="not a usable"):
        AnswerStore(path)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE mine (a)")
    database.close()
    with pytest.raises(Exception, match="of version 1"):
        AnswerStore(other)
