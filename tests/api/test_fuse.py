"""``fuse``: a fused run without judgments."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fusion_bench as fb
from fusion_bench.errors import ConfigError, DataError, FusionBenchError
from fusion_bench.methods.fuse.rrf import RRF
from tests import tiny
from tests.api.cases import BM25, DENSE, QRELS, RUNS, make_collection

FRAME = pd.DataFrame(
    [(q, d, s) for q, docs in DENSE.items() for d, s in docs.items()],
    columns=["qid", "docno", "score"],
)


def test_reciprocal_rank_fusion_by_hand_over_queries_of_any_run() -> None:
    fused = fb.fuse(RUNS, "rrf", k=60)
    assert fused.to_dict()["q1"] == {"d1": 1 / 62 + 1 / 61, "d2": 1 / 61, "d3": 1 / 62}
    assert fused.name == "rrf"
    fused = fb.fuse([{"q1": {"d": 1.0}}, {7: {8: 1.0}}])
    assert fused.to_dict().keys() == {"q1", "7"}


SYSTEMS: list[Any] = [
    "rrf",
    ("rrf", {"k": 60}),
    fb.rrf(60),
    RRF(),
    fb.System("mine", ["bm25", "dense"]),
    {"fusion": "rrf"},
]


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_in_any_form(system: Any) -> None:  # noqa: ANN401
    assert fb.fuse(RUNS, system).to_dict() == fb.fuse(RUNS, "rrf", k=60).to_dict()


@pytest.mark.parametrize(
    "runs",
    [
        [fb.Run.from_dict("bm25", BM25), fb.Run.from_dict("dense", DENSE)],
        {"a": BM25, "b": fb.Run.from_dict("dense", DENSE)},
        [BM25, DENSE],
        {"a": {"q1": ["d2", "d1"], "q2": ["d2", "d3"]}, "b": FRAME},
    ],
)
def test_runs_in_any_form(runs: object) -> None:
    assert fb.fuse(runs).to_dict() == fb.fuse(RUNS).to_dict()


def test_keys_of_a_system_and_of_its_fusion() -> None:
    fused = fb.fuse(RUNS, "rrf", top_k=1, weights={"bm25": 2})
    assert [list(docs) for docs in fused.to_dict().values()] == [["d1"], ["d3"]]
    scores = {"q1": {"d2": 0.9, "d1": 0.1}, "q2": {"d3": 0.5}}
    blend = {"method": "linear", "reranker": "ce", "beta": 1.0, "depth": 10, "missing": "below"}
    reranked = fb.fuse(RUNS, "rrf", rerankers={"ce": scores}, blend=blend)
    assert next(iter(reranked.to_dict()["q1"])) == "d2"


def test_a_dataset_is_fused_with_its_rerankers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny.make(tmp_path))
    blend = {"method": "replace", "reranker": "r", "missing": "below"}
    by_name, by_object = (
        fb.fuse(given, "rrf", blend=blend) for given in ("tiny", fb.load_dataset("tiny"))
    )
    assert by_name.to_dict() == by_object.to_dict()
    assert list(by_name.to_dict()["q3"]) == ["d1", "d9"]
    assert fb.fuse("datasets/tiny/a.trec").to_dict().keys() == by_name.to_dict().keys()


@pytest.mark.parametrize(
    ("runs", "system", "options", "message"),
    [
        (RUNS, "rff", {}, "'rff'; did you mean 'rrf'"),
        (RUNS, "rrf", {"kk": 1}, r"fusion\.kk: unknown key"),
        (RUNS, "rrf", {"weights": {"bn25": 1}}, "'bn25' fits no"),
        (RUNS, ("rrf", {"runs": ["bm52"]}), {}, "'bm52'; .*'bm25'"),
        (RUNS, 3, {}, "not 3"),
        (RUNS, ("rrf", 3), {}, r"give a method's name"),
        (RUNS, ("rrf", None), {}, r"give a method's name"),
        ({"bm25": {}, "dense": DENSE}, "rrf", {}, "run 'bm25': no"),
        (RUNS, "rrf", {"queries": {"q1": {"type": 3.5}}}, "'q1': type must"),
        (RUNS, "rrf", {"score_spaces": {"ce": "unit"}}, "unknown reranker 'ce'"),
        (
            RUNS,
            "rrf",
            {"rerankers": {"ce": DENSE}, "score_spaces": {"ce": "unti"}},
            "'unti'; .*'unit'",
        ),
        (
            RUNS,
            "rrf",
            {"rerankers": {"ce": BM25}, "score_spaces": {"ce": "unit"}},
            "ce: rerank score 9.1",
        ),
        (RUNS, fb.System("a", ["bm25"]), {"k": 3}, "parameters go with"),
        (RUNS, {"fusion": "rrf", "depht": 3}, {}, "unknown key 'depht'"),
        (RUNS, "rrf", {"blend": {"method": "linear", "reranker": "ce"}}, "unknown reranker 'ce'"),
        ({}, "rrf", {}, "at least one"),
        ([], "rrf", {}, "at least one"),
        ({"bm25": BM25, "dense": "nowhere.trec"}, "rrf", {}, "nowhere.trec: no"),
        ([fb.Run.from_dict(BM25), fb.Run.from_dict(DENSE)], "rrf", {}, "named 'run'"),
    ],
)
def test_what_cannot_be_fused_says_why(
    runs: object,
    system: Any,  # noqa: ANN401
    options: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(FusionBenchError, match=message) as caught:
        fb.fuse(runs, system, **options)
    assert isinstance(caught.value, ConfigError | DataError)


BARE = {"normalize": "min_max"}


def test_lists_that_are_skipped_unasked_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="'missing: zero'"):
        fb.fuse(RUNS, ("weighted_score", BARE))
    with pytest.warns(UserWarning, match="'missing: zero'"):
        tuned = fb.tune(*make_collection(20), ("weighted_score", BARE), trials=2, folds=0)
    assert "missing-skip-unasked" in {finding.id for finding in tuned.report.lint}
    compared = fb.compare(QRELS, RUNS, {"bare": ("weighted_score", BARE)})
    assert [text for text in compared.warnings if "'missing: zero'" in text]


@pytest.mark.parametrize("keys", [BARE | {"missing": "skip"}, {}])
def test_lists_that_are_skipped_as_asked_are_not(keys: dict[str, Any]) -> None:
    fb.fuse(RUNS, ("weighted_score", keys))  # a warning would be an error
    assert not fb.compare(QRELS, RUNS, {"s": ("weighted_score", keys)}).report.lint
