"""The real pipeline on a model of one layer: a table of random token vectors, as ONNX."""

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers

from fusion_bench.errors import DataError
from fusion_bench.models.encoders.local import DenseIndex, Encoder

WORDS = ["[UNK]", "actor", "dumps", "memory", "runs", "task", "disk"]
TABLE = np.random.default_rng(1).normal(size=(len(WORDS), 8)).astype(np.float32)


def save_model(path: Path, *, token_types: bool) -> None:
    """Token vectors by look-up; with token types, as BERT's exports have them, they are added."""
    tokens = ["batch", "tokens"]
    inputs = ["input_ids", "attention_mask", *(["token_type_ids"] if token_types else [])]
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["looked_up"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["wide"]),
        helper.make_node("Mul", ["looked_up", "wide"], ["masked"]),
    ]
    output = "masked"
    if token_types:
        nodes += [
            helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["types", "last"], ["wide_types"]),
            helper.make_node("Add", ["masked", "wide_types"], ["typed"]),
        ]
        output = "typed"
    graph = helper.make_graph(
        nodes,
        "lookup",
        [helper.make_tensor_value_info(name, TensorProto.INT64, tokens) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, [*tokens, 8])],
        [
            numpy_helper.from_array(TABLE, "table"),
            numpy_helper.from_array(np.array([2], dtype=np.int64), "last"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))


@pytest.fixture(params=[False, True], ids=["plain", "token types"])
def paths(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, Path]:
    model, tokenizer = tmp_path / "model.onnx", tmp_path / "tokenizer.json"
    save_model(model, token_types=request.param)
    vocabulary = {word: i for i, word in enumerate(WORDS)}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token=WORDS[0]))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    # As in the shipped file: fixed padding, which the encoder has to switch off.
    words.enable_padding(length=16)
    words.save(str(tokenizer))
    return model, tokenizer


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def encoder(paths: tuple[Path, Path], *, max_tokens: int = 256, batch: int = 32) -> Encoder:
    model, tokenizer = paths
    return Encoder(
        model,
        tokenizer,
        model_sha256=sha256(model),
        tokenizer_sha256=sha256(tokenizer),
        max_tokens=max_tokens,
        batch=batch,
    )


def expected(text: str) -> NDArray[np.float64]:
    ids = [WORDS.index(w) if w in WORDS else 0 for w in text.split()]
    mean = TABLE[ids].astype(np.float64).mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))


TEXTS = ["actor dumps memory", "runs", "task task disk", "actor runs task", "unheard disk"]


@pytest.mark.parametrize("batch", [1, 2, 32])
def test_vectors_are_normalized_means_in_the_order_of_the_texts(
    paths: tuple[Path, Path], batch: int
) -> None:
    vectors = encoder(paths, batch=batch).encode(TEXTS)
    np.testing.assert_allclose(vectors, [expected(text) for text in TEXTS], atol=1e-6)


def test_vectors_are_cut_and_depend_on_no_company(paths: tuple[Path, Path]) -> None:
    model = encoder(paths)
    together = model.encode(TEXTS)
    np.testing.assert_array_equal(model.encode(TEXTS), together)
    for text, vector in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(model.encode([text])[0], vector, atol=1e-6)
    vectors = encoder(paths, max_tokens=2).encode(["actor dumps memory disk"])
    np.testing.assert_allclose(vectors[0], expected("actor dumps"), atol=1e-6)


def test_scores_are_cosines_where_there_is_something_to_search(paths: tuple[Path, Path]) -> None:
    index = DenseIndex({"a": "actor", "b": "disk"}, encoder(paths))
    assert index.scores([""]).tolist() == [[0, 0]]
    assert index.scores(["", "actor"])[0].tolist() == [0, 0]
    assert DenseIndex({"a": ""}, encoder(paths)).scores(["actor"]).tolist() == [[0]]
    index = DenseIndex({str(i): text for i, text in enumerate(TEXTS)}, encoder(paths))
    vectors = np.array([expected(text) for text in TEXTS])
    assert index.ids == ("0", "1", "2", "3", "4")
    np.testing.assert_allclose(index.scores(TEXTS), vectors @ vectors.T, atol=1e-6)
    model = encoder(paths)
    assert DenseIndex({}, model).scores(["actor"]).shape == (1, 0)
    assert DenseIndex({"a": "actor"}, model).scores([]).shape == (0, 1)


@pytest.mark.parametrize("which", [0, 1])
def test_another_file_is_refused(paths: tuple[Path, Path], which: int) -> None:
    digests = [sha256(path) for path in paths]
    paths[which].write_bytes(paths[which].read_bytes() + b" ")
    with pytest.raises(DataError, match=f"{paths[which].name}: SHA-256 is .* expected"):
        Encoder(*paths, model_sha256=digests[0], tokenizer_sha256=digests[1])


def test_a_missing_file_is_named(paths: tuple[Path, Path]) -> None:
    with pytest.raises(DataError, match=r"none\.onnx"):
        Encoder(Path("none.onnx"), paths[1], model_sha256="", tokenizer_sha256="")


def test_token_vectors_have_length_one_and_average_to_the_sentence(
    paths: tuple[Path, Path],
) -> None:
    [tokens, other] = encoder(paths).encode_tokens(["actor dumps memory", "disk"])
    assert tokens.shape == (3, 8)
    assert other.shape == (1, 8)
    np.testing.assert_allclose(np.linalg.norm(tokens, axis=1), 1, rtol=1e-6)
    looked_up = TABLE[[WORDS.index(word) for word in ("actor", "dumps", "memory")]]
    expected = looked_up / np.linalg.norm(looked_up, axis=1, keepdims=True)
    np.testing.assert_allclose(tokens, expected, rtol=1e-5)
