"""``types``: given, predicted or ``hybrid`` for all, beside the obvious loop over the queries."""

import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from fusion_bench.config.query_types import type_of
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.json_objects import load_queries, parse_query
from fusion_bench.ranking.final_lists import align_all_queries, make_final_lists
from fusion_bench.ranking.plain_systems import choose_class
from tests import tiny

Capture = pytest.CaptureFixture[str]
#: Given type and confidence, predicted type and confidence.
QUERIES: dict[str, tuple[str | None, float | None, str | None, float | None]] = {
    "q1": ("local", None, "global", 0.9),
    "q2": ("global", 0.9, "local", 0.6),
    "q3": ("local", 0.5, "local", None),
    "q4": (None, None, "strange", 1.0),
    "q5": ("global", None, None, None),
}
KNOWN = ("local", "global", "hybrid")
WEIGHTS = {"local": {"a": 1, "b": 0}, "global": {"a": 0, "b": 1}, "hybrid": {"a": 0.5, "b": 0.5}}
LISTS = {
    "a": {query: {"d1": 3.0, "d2": 2.0, "d3": 1.0} for query in QUERIES},
    "b": {query: {"d3": 3.0, "d2": 2.0, "d4": 1.0} for query in QUERIES},
}


def describe(query: str) -> dict[str, Any]:
    keys = ("type", "confidence", "predicted_type", "predicted_confidence")
    facts = zip(keys, QUERIES[query], strict=True)
    return {"id": query, **{key: value for key, value in facts if value is not None}}


def make_system(types: object = None, weights: object = None) -> System:
    fusion = {"method": "rrf", "weights": weights or {"by_query_type": WEIGHTS}}
    return System("s", ["a", "b"], fusion, types=types)


def wanted_type(query: str, types: str | None) -> str:
    given, confidence, predicted, sureness = QUERIES[query]
    if types == "hybrid":
        return "hybrid"
    if types == "predicted":
        return type_of(predicted, sureness, KNOWN)
    return type_of(given, confidence, KNOWN)


@pytest.mark.parametrize("types", [None, "given", True, "true", "predicted", "hybrid"])
def test_each_query_gets_the_weights_of_the_type_that_counts(types: str | bool | None) -> None:
    known = {query: parse_query(describe(query), "") for query in QUERIES}
    runs = align_all_queries([Run.from_dict(k, v) for k, v in LISTS.items()], queries=known)
    found = make_final_lists(make_system(types), runs).to_run().to_dict()
    for query in QUERIES:
        kind = wanted_type(query, str(types))
        plain = make_system(weights=WEIGHTS[kind])
        assert found[query] == make_final_lists(plain, runs).to_run().to_dict()[query], query
        live = Query(query, None, known[query].type, confidence=known[query].confidence)
        with_fields = parse_query(describe(query), "")
        assert choose_class(make_system(types), with_fields) == (
            kind if types != "predicted" or QUERIES[query][2] else wanted_type(query, None)
        )
        if types == "predicted":  # in a live query the type is what was predicted
            assert choose_class(make_system(types), live) == wanted_type(query, None)


def test_what_is_written_says_it_only_where_it_was_asked() -> None:
    assert "types" not in make_system().resolved_config
    assert make_system("predicted").resolved_config["types"] == "predicted"
    assert make_system(types=True).types == "given"


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"types": "guessed"}, "types"),
        (
            {"types": "hybrid", "fusion": {"method": "rrf", "k": {"by_intent": {"default": 60}}}},
            "by_intent exclude",
        ),
    ],
)
def test_what_does_not_go_together(keys: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        System("s", ["a", "b"], **keys)


@pytest.mark.parametrize("value", [1.5, "high", True, float("nan")])
def test_a_predicted_confidence_lies_between_0_and_1(tmp_path: Path, value: object) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text(json.dumps({"id": "a", "predicted_confidence": value}), encoding="utf-8")
    with pytest.raises(DataError, match=r"queries.jsonl:1:.*predicted_confidence"):
        load_queries(path)


EXPERIMENT = """\
dataset: tiny
measures: [RR@10]
baseline: none
split: all
systems:
  none: {runs: [a, b], fusion: &by {method: rrf, weights: {by_query_type: {local: {a: 1, b: 0},
    hybrid: {a: 0.5, b: 0.5}}}}, types: hybrid}
  given: {runs: [a, b], fusion: *by}
  predicted: {runs: [a, b], fusion: *by, types: predicted}
"""


def test_an_experiment_compares_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tiny.make(tmp_path))
    Path("types.yaml").write_text(EXPERIMENT, encoding="utf-8")
    command = ["eval", "types.yaml", "--no-plots", "--json"]
    assert main(command) == 2
    message = json.loads(capsys.readouterr().out)["error"]["message"]
    assert "a 'predicted_type'" in message
    assert main(["fuse", "types.yaml", "--system", "predicted", "--out", "x.trec"]) == 2
    queries = Path("datasets/tiny/queries.jsonl")
    before = load_dataset(Path("datasets/tiny/dataset.yaml")).fingerprint
    lines = [json.loads(line) for line in queries.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["predicted_type"] = "local" if line["id"] == "q3" else "hybrid"
    queries.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert load_dataset(Path("datasets/tiny/dataset.yaml")).fingerprint != before
    capsys.readouterr()
    assert main(command) == 0
    collection = json.loads(capsys.readouterr().out)["collections"][0]
    values = {
        each["name"]: dict(
            zip(collection["queries"], each["measures"]["RR@10"]["values"], strict=True)
        )
        for each in collection["systems"]
        if each["kind"] == "system"
    }
    by_source = {"local": {"q1": 0.5, "q2": 0.5, "q3": 1.0, "q4": 0.5}}
    for query in ("q1", "q4"):  # given as local
        assert values["given"][query] == by_source["local"][query]
    assert values["predicted"]["q3"] == by_source["local"]["q3"]
    for query in ("q1", "q2", "q4"):
        assert values["predicted"][query] == values["none"][query]
