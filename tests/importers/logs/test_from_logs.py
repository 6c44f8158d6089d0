"""Logs as datasets: what a log becomes, and what it may not hold."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml

from fusion_bench import evaluate_systems
from fusion_bench.cli import main
from fusion_bench.config.query_types import CONV_03_05
from fusion_bench.errors import ConfigError, DataError, FusionBenchError
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.importers.log_dataset import LogDataset, write_log_dataset
from fusion_bench.importers.options import LogOptions, OnDuplicate
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_config import documents_of
from fusion_bench.ranking import final_lists
from fusion_bench.ranking.final_lists import make_final_lists
from fusion_bench.schema import (
    QueryType,
    RRFConfig,
    SearchStrategy,
    SearchWeights,
    calculate_rrf_score,
)
from fusion_bench.util.files import write_atomic
from tests.importers.logs import cases
from tests.schema.cases import METRIC

Capture = pytest.CaptureFixture[str]
ON, OFF = METRIC, {"enabled": False, "resultCount": 0, "processingTime": 0, "topScore": 0}
LOCAL = CONV_03_05["local"]


def make_item(name: str, score: float, **relevance: object) -> dict[str, Any]:
    scores = {"combined": score, "keyword": 0.0, "semantic": 0.0, "graph": 0.0, **relevance}
    return {
        "id": name,
        "type": "chunk",
        "score": score,
        "relevance": scores,
        "content": {"text": f"text of {name}"},
        "highlights": [],
        "sources": {"chunkId": name, "entityIds": [], "relationIds": []},
    }


def make_search(
    text: str,
    *items: dict[str, Any],
    query_type: str = "local",
    least: float = 0.0,
    on: str = "ksg",
    **options: object,
) -> dict[str, Any]:
    return {
        "query": {
            "text": text,
            "type": query_type,
            "filters": {"minRelevance": least},
            "options": options,
        },
        "results": list(items),
        "totalCount": len(items),
        "processingTime": 1,
        "strategies": {
            name: ON if name[0] in on else OFF for name in ("keyword", "semantic", "graph")
        },
    }


def make_classification(text: str, query_type: str, confidence: float) -> dict[str, Any]:
    return {
        "originalQuery": text,
        "type": query_type,
        "confidence": confidence,
        "extractedEntities": [],
        "suggestedWeights": CONV_03_05[query_type],
        "expandedQueries": [],
    }


def write_log(folder: Path, *records: dict[str, Any] | str) -> Path:
    path = folder / "results.jsonl"
    lines = [each if isinstance(each, str) else json.dumps(each) for each in records]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def convert(
    folder: Path,
    *records: dict[str, Any] | str,
    qrels: Path | None = None,
    queries: Path | None = None,
    k: int = 60,
    on_duplicate: OnDuplicate = "error",
) -> LogDataset:
    options = LogOptions(
        out=folder / "out", qrels=qrels, queries=queries, k=k, on_duplicate=on_duplicate
    )
    return write_log_dataset(write_log(folder, *records), options)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_lists(folder: Path) -> dict[str, list[tuple[str, str, float]]]:
    return {
        path.stem: [(row["query"], row["document"], row["score"]) for row in read_lines(path)]
        for path in (folder / "out").glob("*/*.jsonl")
    }


A = make_item("a", 0.9, keyword=0.5, semantic=0.2, rerank=0.9)
B = make_item("b", 0.6, keyword=0.7, rerank=0.6)
C = make_item("c", 0.0, semantic=0.1)


def test_lists_hold_what_a_strategy_scores_above_0(tmp_path: Path) -> None:
    convert(tmp_path, make_search("one", A, B, C), make_search("two", B))
    assert read_lists(tmp_path) == {
        "keyword": [("q1", "b", 0.7), ("q1", "a", 0.5), ("q2", "b", 0.7)],
        "semantic": [("q1", "a", 0.2), ("q1", "c", 0.1)],
        "rerank": [("q1", "a", 0.9), ("q1", "b", 0.6), ("q2", "b", 0.6)],
        "production": [("q1", "a", 0.9), ("q1", "b", 0.6), ("q1", "c", 0.0), ("q2", "b", 0.6)],
    }


def add_judgments(folder: Path) -> None:
    (folder / "qrels.txt").write_text("q1 0 a 1\n", encoding="utf-8")
    with (folder / "dataset.yaml").open("a", encoding="utf-8") as file:
        file.write("qrels: qrels.txt\n")


def test_the_dataset_loads_once_it_is_judged(tmp_path: Path) -> None:
    made = convert(tmp_path, make_search("one", A, B, C))
    assert any(note.startswith("judgments are missing") for note in made.notes)
    folder = tmp_path / "out"
    with pytest.raises(ConfigError, match="fusion-bench judge"):
        load_dataset(folder / "dataset.yaml")
    add_judgments(folder)
    dataset = load_dataset(folder / "dataset.yaml")
    assert dataset.name == "out"
    assert dataset.spaces == {"rerank": "unit"}
    roles = {name: sorted(run.roles) for name, run in dataset.runs.items()}
    assert roles == {"keyword": ["keyword"], "semantic": ["semantic"], "production": []}
    assert documents_of(folder / "dataset.yaml")["b"].text == "text of b"
    assert (
        main(["eval", str(folder / "experiment.yaml"), "--no-plots", "--out", str(tmp_path)]) == 0
    )


def test_a_result_may_score_as_low_as_the_one_before(tmp_path: Path) -> None:
    items = [make_item(name, 0.5, keyword=0.5) for name in "bca"]
    convert(tmp_path, make_search("one", *items))
    add_judgments(tmp_path / "out")
    dataset = load_dataset(tmp_path / "out/dataset.yaml")
    assert list(dataset.runs["production"].to_dict()["q1"]) == ["b", "c", "a"]


def test_facts_of_documents_are_spread_one_over_the_other(tmp_path: Path) -> None:
    first = {**A, "content": {"text": "old", "summary": "s"}}
    second = {**A, "content": {"text": "new", "contextAfter": "c"}}
    convert(tmp_path, make_search("one", first), make_search("two", second))
    [document] = read_lines(tmp_path / "out/documents.jsonl")
    assert list(document.items()) == [
        ("id", "a"),
        ("text", "new"),
        ("summary", "s"),
        ("type", "chunk"),
        ("chunkId", "a"),
        ("entityIds", []),
        ("relationIds", []),
        ("contextAfter", "c"),
    ]


@pytest.mark.parametrize(
    ("searched", "classified", "wanted"),
    [
        ("global", None, {"type": "global"}),
        ("global", ("global", 0.9), {"type": "global", "confidence": 0.9}),
        ("hybrid", ("global", 0.6), {"type": "global", "confidence": 0.6}),
        ("local", ("global", 0.9), {"type": "local"}),
    ],
)
def test_types_are_those_that_production_searched_with(
    tmp_path: Path, searched: str, classified: tuple[str, float] | None, wanted: dict[str, Any]
) -> None:
    lines = [make_search("one", A, query_type=searched)]
    lines += [] if classified is None else [make_classification("one", *classified)]
    convert(tmp_path, *lines)
    [query] = read_lines(tmp_path / "out/queries.jsonl")
    assert query == {"id": "q1", "text": "one", **wanted}


@pytest.mark.parametrize(
    ("verdicts", "wanted"),
    [
        (["incorrect", "correct"], "correct"),
        (["incorrect", "ambiguous"], "ambiguous"),
        (["incorrect"], "incorrect"),
    ],
)
def test_a_query_is_as_good_as_its_best_result(
    tmp_path: Path, verdicts: list[str], wanted: str
) -> None:
    items = []
    for n, verdict in enumerate(verdicts):
        crag: dict[str, object] = {
            "relevance": verdict,
            "confidence": 0.5,
            "needsWebSearch": verdict != "correct",
        }
        crag["refinedQuery"] = "better"
        items.append(make_item(f"d{n}", 0.5, keyword=0.5, crag=crag))
    convert(tmp_path, make_search("one", *items, cragEnabled=True))
    [query] = read_lines(tmp_path / "out/queries.jsonl")
    assert query["crag"] == wanted
    assert query["needs_web_search"] is (wanted != "correct")
    assert (query["crag_confidence"], query["refined_query"]) == (0.5, "better")


def read_replay(folder: Path) -> dict[str, Any]:
    text = (folder / "out/experiment.yaml").read_text(encoding="utf-8")
    replay: dict[str, Any] = yaml.safe_load(text)["systems"]["replay"]
    return replay


def test_the_replay_has_the_settings_of_production(tmp_path: Path) -> None:
    weights = {"keyword": 0.6, "semantic": 0.4, "graph": 0.0}
    search = make_search("one", A, B, least=0.25, limit=7, weights=weights)
    made = convert(tmp_path, search, k=50)
    assert read_replay(tmp_path) == {
        "runs": ["keyword", "semantic"],
        "fusion": {
            "method": "rrf",
            "k": 50,
            "normalize": "three_lists",
            "weights": {"keyword": 0.6, "semantic": 0.4},
        },
        "blend": {"method": "replace", "reranker": "rerank", "depth": 50, "missing": "below"},
        "min_relevance": 0.25,
        "top_k": 7,
    }
    assert made.check.same_order == 1
    assert made.check.same_scores == 0


@pytest.mark.parametrize("normalizes", [True, False])
def test_the_logged_scores_tell_the_scale(tmp_path: Path, normalizes: bool) -> None:
    weights, config = SearchWeights(**LOCAL), RRFConfig(normalize_scores=normalizes)
    ranks = {SearchStrategy.KEYWORD: 1, SearchStrategy.SEMANTIC: 1}
    score = calculate_rrf_score(ranks, weights, config)
    item = make_item("a", score, keyword=0.5, semantic=0.5)
    made = convert(tmp_path, make_search("one", item))
    assert made.check.same_scores == made.check.same_order == 1
    assert ("normalize" in read_replay(tmp_path)["fusion"]) is normalizes


def test_weights_that_differ_by_type_become_weights_by_type(tmp_path: Path) -> None:
    item = make_item("a", 0.5, keyword=0.5, graph=0.5)
    searches = [
        make_search(name, item, query_type=name, weights=CONV_03_05[name]) for name in QueryType
    ]
    convert(tmp_path, *searches)
    table = read_replay(tmp_path)["fusion"]["weights"]["by_query_type"]
    assert table == {
        name: {"keyword": weights["keyword"], "graph": weights["graph"]}
        for name, weights in CONV_03_05.items()
    }


def test_settings_that_differ_are_noted(tmp_path: Path) -> None:
    searches = [make_search(f"{n}", A, B, limit=2 + (n == 0)) for n in range(3)]
    made = convert(tmp_path, *searches)
    assert read_replay(tmp_path)["top_k"] == 2
    assert any("limit differs: 2" in note for note in made.notes)


def test_what_the_replay_orders_otherwise_is_noted(tmp_path: Path) -> None:
    made = convert(tmp_path, make_search("one", B, A), make_search("two", A, B))
    assert made.check.differing == ("q1",)
    assert any(note.startswith("the replay orders 1") for note in made.notes)


def test_pages_of_a_query_are_joined(tmp_path: Path) -> None:
    made = convert(
        tmp_path,
        make_search("one", C, limit=2, offset=2),
        make_search("two", B, limit=2, offset=2),
        make_search("one", A, B, limit=2),
    )
    assert [row[:2] for row in read_lists(tmp_path)["production"]] == [
        ("q1", "a"),
        ("q1", "b"),
        ("q1", "c"),
    ]
    assert read_replay(tmp_path)["top_k"] == 4
    assert made.queries == 1
    assert any(note.startswith("1 query left out") for note in made.notes)


def test_the_same_search_counts_once(tmp_path: Path) -> None:
    made = convert(tmp_path, make_search("one", A, B), make_search("one", A, B))
    assert made.lists["production"] == 2
    assert any(note.startswith("1 record") for note in made.notes)


def test_the_last_search_counts_where_asked(tmp_path: Path) -> None:
    lines = make_search("one", A, B), make_search("one", B)
    with pytest.raises(DataError, match=r"results.jsonl:2: .*'one'"):
        convert(tmp_path, *lines)
    convert(tmp_path, *lines, on_duplicate="last")
    assert read_lists(tmp_path)["production"] == [("q1", "b", 0.6)]


def test_queries_may_be_named(tmp_path: Path) -> None:
    names = tmp_path / "queries.jsonl"
    names.write_text('{"id": "x", "text": "one", "group": "g"}\n{"id": "y"}\n', encoding="utf-8")
    qrels = tmp_path / "judged.tsv"
    qrels.write_text("query\tdocument\tgrade\nx\ta\t1\n", encoding="utf-8")
    made = convert(tmp_path, make_search("one", A), queries=names, qrels=qrels)
    assert made.notes[0].startswith("the logged combined")
    dataset = load_dataset(tmp_path / "out/dataset.yaml")
    assert dataset.queries["x"].group == "g"
    assert dataset.qrels.to_dict() == {"x": {"a": 1}}


def test_named_queries_and_scores_are_complete(tmp_path: Path) -> None:
    wrong = make_search("one", make_item("a", 0.5, keyword=float("nan")))
    with pytest.raises(DataError, match=r"results\.0\.relevance\.keyword: "):
        convert(tmp_path, "", wrong)
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"id": "x", "query": "one"}\n', encoding="utf-8")
    log = write_log(tmp_path, make_search("one", make_item("a", 0.5, keyword=1.0)))
    with pytest.raises(DataError, match=r"jsonl:1: .*'text'.*id, query"):
        write_log_dataset(log, LogOptions(out=tmp_path / "out", queries=queries))


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([""], "no search: at"),
        (["{"], ":1: not JSON"),
        (["[]"], ":1: a JSON object"),
        (["{}"], ":1: query: is required"),
        ([make_classification("one", "local", 0.9)], "no search: at"),
        ([make_classification("one", "local", 1.9)], ":1: confidence: "),
        ([make_search("one", A, A)], "'a' stands in results.0"),
        ([make_search("one", A, B, limit=1)], "options.limit is 1"),
        ([make_search("one", A, offset=1)], "results of no query"),
        ([make_search("one", make_item("a", 0.5))], "semantic or graph"),
        ([make_search("one", B, on="s")], "relevance.keyword must"),
        ([make_search("one", A, rerankEnabled=False)], "relevance.rerank must"),
        ([make_search("one", A), make_search("one", A, query_type="global")], "'one' was searched"),
    ],
)
def test_what_a_log_may_not_hold(tmp_path: Path, lines: list[Any], says: str) -> None:
    with pytest.raises(DataError) as caught:
        convert(tmp_path, *lines)
    assert says in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("queries", "qrels", "says"),
    [
        ('{"id": "x", "text": "other"}', None, "text 'one'"),
        ('{"id": "x", "text": "one"}\n{"id": "y", "text": "one"}', None, "one text, 'one'"),
        (None, "x 0 a 1", "'x' here, 'q1' in the"),
        (None, "x 0 a", "qrels.txt:1: "),
    ],
)
def test_files_that_do_not_fit_the_log(
    tmp_path: Path, queries: str | None, qrels: str | None, says: str, capsys: Capture
) -> None:
    arguments = ["dataset", "from-logs", str(write_log(tmp_path, make_search("one", A)))]
    for name, text in (("queries.jsonl", queries), ("qrels.txt", qrels)):
        if text is not None:
            (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
            arguments += [f"--{name.partition('.')[0]}", str(tmp_path / name)]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    assert says in capsys.readouterr().err


def test_the_command_says_what_it_made(tmp_path: Path, capsys: Capture) -> None:
    log, out = str(write_log(tmp_path, make_search("one", A, B))), str(tmp_path / "out")
    assert main(["dataset", "from-logs", log, "--out", out, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["lists"] == {"keyword": 2, "semantic": 1, "production": 2, "rerank": 2}
    assert main(["dataset", "from-logs", log, "--out", out]) == 2
    assert "dataset.yaml exists" in capsys.readouterr().err
    assert main(["dataset", "from-logs", log, "--out", f"{out}2"]) == 0
    printed = capsys.readouterr().out
    assert "replay: 1 of 1" in printed
    assert "note: judgments" in printed


def test_a_classification_that_nobody_searched_is_noted(tmp_path: Path) -> None:
    made = convert(
        tmp_path,
        make_search("one", make_item("a", 0.5, keyword=1.0)),
        make_classification("two", "local", 0.9),
    )
    assert any("(for example 'two')" in note for note in made.notes)


def test_a_dataset_that_cannot_be_written_whole_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_search("q", make_item("d1", 0.9, keyword=1.0))

    def refuse(path: Path, data: bytes) -> Path:
        if path.name == "documents.jsonl":
            raise FusionBenchError(f"{path}: cannot be written: the disk is full")
        return write_atomic(path, data)

    with monkeypatch.context() as patched:
        patched.setattr("fusion_bench.importers.log_dataset.write_atomic", refuse)
        with pytest.raises(FusionBenchError, match="cannot be written"):
            convert(tmp_path, log)
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []
    assert convert(tmp_path, log).files


RERANKED = {"method": "replace", "reranker": "ltr", "depth": 50, "missing": "below"}
QUERIES = 12
MEASURES = ["nDCG@10", "RR@10", "R@100"]


@pytest.mark.parametrize("reranker", [None, "ltr"])
def test_a_log_gives_the_numbers_of_the_bench(tmp_path: Path, reranker: str | None) -> None:
    judged, bench = cases.load_attack(QUERIES)
    bench = replace(bench, spaces={"ltr": "unbounded"})
    queries = bench.queries
    system = cases.make_system(**({} if reranker is None else {"blend": RERANKED}))
    lists = make_final_lists(system, bench)
    with patch.object(final_lists, "separate_ties", lambda scores, *_: scores):
        logged = make_final_lists(system, bench)  # production logs equal scores as they are
    log = tmp_path / "results.jsonl"
    log.write_text("\n".join(cases.log_lists(logged, reranker)), encoding="utf-8")
    names = tmp_path / "queries.jsonl"
    lines = [json.dumps({"id": query, "text": f"text of {query}"}) for query in queries]
    names.write_text("\n".join(lines), encoding="utf-8")
    qrels = tmp_path / "judged.txt"
    grades = judged.to_dict()
    rows = [(q, d, g) for q in queries for d, g in grades[q].items()]
    qrels.write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in rows), encoding="utf-8")

    folder = tmp_path / "mine"
    made = write_log_dataset(log, LogOptions(out=folder, qrels=qrels, queries=names))

    assert (made.queries, made.check.same_order, made.check.differing) == (QUERIES, QUERIES, ())
    assert made.check.same_scores == (QUERIES if reranker is None else made.check.same_scores)
    read = load_dataset(folder / "dataset.yaml")
    wanted, production = lists.to_run().to_dict(), read.runs["production"].to_dict()
    assert {q: list(ranked) for q, ranked in production.items()} == {
        q: list(ranked) for q, ranked in wanted.items()
    }
    if reranker is None:
        assert production == logged.to_run().to_dict()
    experiment, _ = read_experiment(folder / "experiment.yaml")
    replay, as_logged = (experiment.systems[name] for name in ("replay", "production"))
    runs = read.aligned(list(read.runs), ties=experiment.ties)
    [values] = evaluate_systems(system, bench, MEASURES, spaces={"ltr": "unbounded"})
    found = evaluate_systems([replay, as_logged], runs, MEASURES, spaces=read.spaces)
    for scores in found:
        for measure, by_query in scores.to_dict().items():
            assert by_query == values.to_dict()[measure]
    assert max(values.to_dict()["nDCG@10"].values()) > 0
