"""Cross-encoders on this machine: a tiny random model, built on disk, through the real code."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from fusion_bench.errors import ConfigError, MissingExtraError, ProviderError
from fusion_bench.models.rerankers import providers
from fusion_bench.util.optional_imports import import_optional
from tests.models.rerank.test_clients import ask

WORDS = ["[UNK]", "[CLS]", "[SEP]", "actor", "dumps", "memory", "runs", "task", "disk"]
TABLE = np.random.default_rng(2).normal(size=(len(WORDS), 2)).astype(np.float32)


def save(folder: Path, *, classes: int = 1) -> Path:
    """A logit that is the mean of a number for each token, which depends on its segment."""
    folder.mkdir(exist_ok=True)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["both"]),
        helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.INT64),
        helper.make_node("Unsqueeze", ["types", "last"], ["index"]),
        helper.make_node("GatherElements", ["both", "index"], ["chosen"], axis=2),
        helper.make_node("ReduceMean", ["chosen"], ["mean"], axes=[1], keepdims=0),
        helper.make_node("Tile", ["mean", "repeats"], ["logits"]),
    ]
    shape = ["batch", "tokens"]
    graph = helper.make_graph(
        nodes,
        "pairs",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in names],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", classes])],
        [
            numpy_helper.from_array(TABLE, "table"),
            numpy_helper.from_array(np.array([2], dtype=np.int64), "last"),
            numpy_helper.from_array(np.array([1, classes], dtype=np.int64), "repeats"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, str(folder / "model.onnx"))
    vocabulary = {word: i for i, word in enumerate(WORDS)}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token=WORDS[0]))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    words.enable_padding(length=64)  # as shipped files have it; the client has to switch it off
    words.save(str(folder / "tokenizer.json"))
    return folder


def expected(query: str, document: str, cut: int = 512) -> float:
    first = [WORDS.index(w) if w in WORDS else 0 for w in query.split()]
    second = [WORDS.index(w) if w in WORDS else 0 for w in document.split()]
    second = second[: cut - len(first) - 3]
    left, right = [1, *first, 2], [*second, 2]
    return float(np.mean([*TABLE[left, 0], *TABLE[right, 1]]))


DOCUMENTS = ["actor dumps memory", "disk", "task runs task", "unheard", "memory dumps actor", ""]


def test_onnx_gives_the_models_logits(tmp_path: Path) -> None:
    provider = providers.build({"method": "onnx", "folder": save(tmp_path / "m")})
    reply, identity = ask(provider, "actor runs", DOCUMENTS)
    np.testing.assert_allclose(
        reply.scores, [expected("actor runs", d) for d in DOCUMENTS], atol=1e-6
    )
    assert identity.model == "cross-encoder/ms-marco-MiniLM-L-6-v2"
    assert identity.space == "logit"
    assert identity.endpoint.startswith("sha256 ")
    alone, _ = ask(provider, "actor runs", DOCUMENTS[2:3])
    assert alone.scores[0] == pytest.approx(reply.scores[2], abs=1e-6)


def test_other_weights_are_another_identity(tmp_path: Path) -> None:
    folder = save(tmp_path / "m")
    before = providers.build({"method": "onnx", "folder": folder}).model_identity
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx/model.onnx")
    assert providers.build({"method": "onnx", "folder": folder}).model_identity == before
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    assert providers.build({"method": "onnx", "folder": folder}).model_identity != before


def test_long_documents_and_queries_are_cut(tmp_path: Path) -> None:
    options = {"method": "onnx", "folder": save(tmp_path / "m"), "max_length": 8}
    reply, _ = ask(providers.build(options), "actor runs", ["task disk " * 20])
    assert reply.scores[0] == pytest.approx(expected("actor runs", "task disk " * 20, 8), abs=1e-6)
    reply, _ = ask(providers.build(options), "task " * 30, ["disk"])
    assert reply.scores[0] == pytest.approx(expected("task " * 4, "disk"), abs=1e-6)


def test_a_model_that_fails_is_a_failure_of_the_provider(tmp_path: Path) -> None:
    """Tokens that the model's table does not have."""
    folder = save(tmp_path / "m")
    words = Tokenizer(models.WordLevel({"[UNK]": 0, "far": 999}, unk_token="[UNK]"))  # noqa: S106
    words.save(str(folder / "tokenizer.json"))

    provider = providers.build({"method": "onnx", "folder": folder})
    with pytest.raises(ProviderError, match="the model failed") as caught:
        ask(provider, "far", ["far"])
    assert caught.value.kind == "server"


def test_models_and_folders_that_cannot_be_used(tmp_path: Path) -> None:
    provider = providers.build({"method": "onnx", "folder": save(tmp_path / "m", classes=2)})
    with pytest.raises(ProviderError, match="one output"):
        ask(provider, "actor", ["disk", "task"])
    provider = providers.build({"method": "onnx", "folder": tmp_path})
    with pytest.raises(ConfigError, match=r"model\.onnx: No"):
        ask(provider, "q", ["d"])
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).write_text("nothing", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        ask(provider, "q", ["d"])
    with pytest.raises(MissingExtraError, match=r"bench\[local\]"):
        import_optional("no_such_library", extra="local", purpose="a local cross-encoder")


def test_sentence_transformers(tmp_path: Path) -> None:
    """Where the extra ``local`` is installed: a BERT of one layer with random weights."""
    pytest.importorskip("sentence_transformers", reason="the extra 'local' is not installed")
    folder = str(tmp_path / "bert")
    transformers = import_optional("transformers", extra="local", purpose="this test")
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", *WORDS, "[MASK]"]), encoding="utf-8")
    config = transformers.BertConfig(
        vocab_size=len(WORDS) + 2,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=1,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    transformers.BertTokenizerFast(str(vocabulary)).save_pretrained(folder)
    provider = providers.build({"method": "sentence_transformers", "model": folder})
    reply, identity = ask(provider, "actor runs", DOCUMENTS)
    assert len(set(reply.scores)) > 1
    assert identity.endpoint.startswith("sha256 ")
    library = import_optional("sentence_transformers", extra="local", purpose="this test")
    torch = import_optional("torch", extra="local", purpose="this test")
    raw = library.CrossEncoder(folder, max_length=512).predict(
        [("actor runs", d) for d in DOCUMENTS], activation_fn=torch.nn.Identity()
    )
    np.testing.assert_allclose(reply.scores, raw, atol=1e-5)
    missing = providers.build({"method": "sentence_transformers", "model": str(tmp_path / "no")})
    with pytest.raises(ConfigError, match="cannot be loaded"):
        ask(missing, "q", ["d"])
