"""Vectors and passages in files, and passages that a language model writes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusion_bench.errors import ConfigError, DataError, ProviderError
from fusion_bench.models.answer_stores import AnswerStore
from fusion_bench.models.endpoints import PROMPT, PassageWriter, collect_answers
from fusion_bench.models.retrievers.dense import (
    cosine_chunks,
    read_passages,
    read_vectors,
    save_passages,
    write_vectors,
)
from tests.models.retrieve.collection import QUERIES, write_lines
from tests.models.retrieve.server import ModelServer, serving

GOOD: dict[str, Any] = {
    "doc_ids": np.array(["a", "b"]),
    "doc": np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float16),
    "query_ids": np.array(["q"]),
    "query": np.array([[0.0, 2.0]], dtype=np.float32),
}


def save(path: Path, **changes: object) -> Path:
    arrays = {name: value for name, value in (GOOD | changes).items() if value is not None}
    np.savez(path, **arrays)
    return path


def test_vectors_of_length_one_are_read_as_written(tmp_path: Path) -> None:
    documents, queries = read_vectors(save(tmp_path / "v.npz"))
    assert {name: vector.tolist() for name, vector in documents.items()} == {
        "a": pytest.approx([0.6, 0.8], abs=1e-3),
        "b": [0.0, 0.0],
    }
    assert queries["q"].tolist() == [0.0, 1.0]
    documents = {"a": np.array([0.6, 0.8]), "b": np.array([1.0, 0.0])}
    path = write_vectors(tmp_path / "sub/v.npz", documents, {})
    read, queries = read_vectors(path)
    assert not queries
    for name, vector in documents.items():
        np.testing.assert_allclose(read[name], vector, atol=1e-7)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"doc": None}, "'doc_ids' alone:"),
        ({"query_ids": None}, "'query' alone"),
        (dict.fromkeys(GOOD, None), "no vectors: doc"),
        ({"doc_ids": np.array([1, 2])}, "'doc_ids'"),
        ({"doc_ids": np.array(["a"])}, r"shape \(2, 2\) for 1 ids"),
        ({"doc_ids": np.array(["a", "a"])}, "'a' appears twice"),
        ({"doc": np.zeros((2, 2), dtype=int)}, "'doc' of type"),
        ({"doc": np.zeros(2)}, r"shape \(2,\)"),
        ({"doc": np.array([[1.0, 2.0], [np.nan, 1.0]])}, "vector of 'b'"),
        ({"query": np.ones((1, 3))}, "vectors of 2"),
        ({"doc_ids": np.array(["a", None], dtype=object)}, "not a NumPy archive"),
    ],
)
def test_what_is_wrong_with_an_archive(
    changes: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        read_vectors(save(tmp_path / "v.npz", **changes))


@pytest.mark.parametrize("data", [b"", b"text", b"PK\x03\x04 half"])
def test_a_file_that_is_no_archive(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"v\.npz: .* NumPy archive") as error:
        read_vectors(path)
    assert "unsafe" not in str(error.value)


def test_missing_files_and_vectors_that_do_not_fit(tmp_path: Path) -> None:
    save(tmp_path / "vectors.npz")
    with pytest.raises(DataError, match=r"mean 'vectors\.npz'"):
        read_vectors(tmp_path / "vector.npz")
    [row] = cosine_chunks(np.zeros((2, 0)), np.eye(3))
    assert row.tolist() == [[0, 0, 0], [0, 0, 0]]
    with pytest.raises(DataError, match=r"2 numbers .* 3"):
        list(cosine_chunks(np.eye(2), np.eye(3)))


KEY = "sk-hyde-0123456789"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYDE_TEST_KEY", KEY)


def writer(state: ModelServer, **options: object) -> PassageWriter:
    base: dict[str, Any] = {"model": "m", "base_url": f"{state.url}/v1", "key": "HYDE_TEST_KEY"}
    return PassageWriter(**{**base, "wait": 0.0, **options})


def test_a_passage_is_written_once(tmp_path: Path) -> None:
    store, asked = AnswerStore(tmp_path / "s.sqlite"), [*QUERIES.values()]
    with serving(ModelServer(key=KEY)) as state:
        passages, usage = collect_answers(writer(state).open_model(), asked, store)
        again, known = collect_answers(writer(state).open_model(), asked, store)
    assert passages == again == [text.encode() for text in asked]  # the server repeats the question
    assert (usage.calls, usage.tokens, known.calls) == (4, 36, 0)
    assert set(state.paid.values()) == {1}
    body = next(b for _, b in state.requests if QUERIES["q1"] in str(b))
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": PROMPT.replace("{query}", QUERIES["q1"])}],
        "temperature": 0.0,
        "max_tokens": 256,
    }


def test_another_prompt_model_or_limit_is_asked_anew(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text('{"not": "a field"} {query}?', encoding="utf-8")
    store, asked = AnswerStore(), ["storm"]
    options: list[dict[str, Any]] = [{}, {"prompt": prompt}, {"model": "n"}, {"max_tokens": 9}]
    options.append({"temperature": 0.5})
    with serving(ModelServer()) as state:
        for changes in [*options, *options]:
            collect_answers(writer(state, **changes).open_model(), asked, store)
    assert len(state.requests) == len(options)
    contents = [body["messages"][0]["content"] for _, body in state.requests]
    assert contents[1] == '{"not": "a field"} storm?'


@pytest.mark.parametrize("choices", [None, [], [{"message": {"content": " "}}]])
def test_an_answer_without_a_passage(choices: object) -> None:
    with (
        serving(ModelServer(change=lambda _: {"choices": choices})) as state,
        pytest.raises(ProviderError, match=r"'storm'|no message"),
    ):
        collect_answers(writer(state).open_model(), ["storm"], AnswerStore())


def test_a_prompt_that_cannot_be_used(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.txt"
    with pytest.raises(ConfigError, match=r"prompt\.txt"):
        writer(ModelServer(url="http://x"), prompt=prompt).read_prompt()
    prompt.write_text("Write.", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"\{query\} must mark"):
        writer(ModelServer(url="http://x"), prompt=prompt).read_prompt()


def test_saved_passages_are_read(tmp_path: Path) -> None:
    path = save_passages(tmp_path / "p.jsonl", {"q1": "潮が満ちる", "q2": "b", "q9": "c"}, "hyde")
    assert read_passages(path, "hyde", {"q2": "", "q1": ""}) == {"q2": "b", "q1": "潮が満ちる"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "q1", "hyde": "x"}], "1 query without a passage .*'q2'"),
        ([{"id": "q1"}, {"id": "q2", "hyde": " "}], "2 queries without a passage"),
        ([{"id": "q1", "hyde": 1.5}], r"p\.jsonl:1: hyde must"),
        ([{"id": "q1"}, {"id": "q1"}], r"p\.jsonl:2: query 'q1' appears"),
        ([{"hyde": "x"}], "an 'id'"),
        ([], "keys"),
    ],
)
def test_what_is_wrong_with_passages(
    rows: list[dict[str, Any]], message: str, tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "p.jsonl", rows)
    with pytest.raises(DataError, match=message):
        read_passages(path, "hyde", {"q1": "", "q2": ""})
