"""Datasets and experiments without YAML."""

import pytest

from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.in_memory import NO_FILE, make_dataset, make_experiment
from fusion_bench.io.dataset import Dataset


def dataset() -> Dataset:
    runs = {
        "a": Run.from_dict("a", {"q1": {"d1": 2.0, "d2": 1.0}}, roles=frozenset({"keyword"})),
        "b": Run.from_dict("b", {"q1": {"d2": 0.5}}),
    }
    scores = Run.from_dict("ce", {"q1": {"d1": 0.9, "d2": -0.1}})
    return make_dataset(
        "my qrels",
        Qrels.from_dict({"q1": {"d2": 2}}),
        runs,
        rerankers={"ce": scores},
        score_spaces={"ce": "logit"},
        binary_relevance=2,
    )


def test_a_dataset_of_what_is_at_hand() -> None:
    made = dataset()
    assert made.spec.qrels is not None
    assert (made.name, made.spec.qrels.path, made.spec.binary_relevance) == ("my-qrels", NO_FILE, 2)
    assert made.spec.runs["a"].roles == ("keyword",)
    assert made.spaces == {"ce": "logit"}
    assert made.aligned(["a", "b"]).rerankers == ("ce",)


def test_what_breaks_a_rule_is_named() -> None:
    with pytest.raises(UnknownNameError, match=r"mine: .* 'on'"):
        make_experiment("mine", {"one": {"runs": ["a"]}}, dataset="d", baseline="on")
    with pytest.raises(ConfigError, match=r"systems.one.fusion"):
        make_experiment("mine", {"one": {"runs": ["a"], "fusion": "rff"}}, dataset="d")
    with pytest.raises(ConfigError, match="least one system"):
        make_experiment("mine", {}, dataset="d")
    made = dataset()
    with pytest.raises(ConfigError, match="unknown key 'binary'"):
        make_dataset("d", made.qrels, made.runs, binary=1)
