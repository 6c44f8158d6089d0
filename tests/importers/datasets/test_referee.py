"""The written collection: what its datasheet says of it holds."""

import gzip
import importlib.util
import json
import sys
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import yaml

import fusion_bench as fb

ROOT = Path(__file__).parents[3] / "datasets" / "referee"
SOURCES = ("question", "hyde", "bm25", "meta", "synergy", "graph")
TYPES = {"local", "global", "relationship", "hybrid"}


@cache
def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"referee_{name}", ROOT / f"rebuild/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@cache
def games() -> list[Any]:
    read: list[Any] = script("texts").read_games(ROOT)
    return read


@cache
def judgments() -> list[Any]:
    read: list[Any] = script("judgments").read_judgments(ROOT / "judgments.jsonl")
    return read


@cache
def queries() -> dict[str, dict[str, Any]]:
    lines = (ROOT / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


@cache
def ranked(name: str) -> dict[str, list[str]]:
    """Documents of each query, best first, where the source is asked."""
    described = yaml.safe_load((ROOT / "dataset.yaml").read_text(encoding="utf-8"))
    when = described["runs"][name].get("when", {})
    lists: dict[str, list[str]] = defaultdict(list)
    for line in gzip.decompress((ROOT / f"runs/{name}.trec.gz").read_bytes()).decode().splitlines():
        query, _, document, rank, _, tag = line.split(" ")
        assert tag == name
        if all(queries()[query][field] in values for field, values in when.items()):
            lists[query].append(document)
            assert int(rank) == len(lists[query])
    return dict(lists)


def test_there_are_as_many_games_chunks_and_questions_as_the_datasheet_says() -> None:
    chunks = [chunk for game in games() for chunk in game.chunks]
    questions = [question for game in games() for question in game.questions]
    assert (len(games()), len(chunks), len(questions)) == (28, 587, 363)
    languages = Counter(question.language for question in questions)
    assert languages["ja"] + languages["fr"] >= len(questions) / 4
    assert {question.type for question in questions} == TYPES
    sheet = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"{count:,}" in sheet for count in (len(chunks), len(questions), len(judgments())))


def test_chunks_have_the_length_of_a_section() -> None:
    for chunk in (chunk for game in games() for chunk in game.chunks):
        if chunk.language == "ja":
            assert 110 <= len("".join(chunk.text.split())) <= 330, chunk.id
        else:
            assert 40 <= len(chunk.text.split()) <= 120, chunk.id


def test_near_duplicates_are_found_where_they_are() -> None:
    texts = [(each.id, each.text, each.language) for game in games() for each in game.chunks]
    texts += [(each.id, each.text, each.language) for game in games() for each in game.questions]
    assert script("duplicates").near_duplicates(texts) == []
    near = script("duplicates").near_duplicates
    first = "Take the topmost tile of the red stack and lay it beside the fountain in the square."
    again = first.replace("tile", "card")
    assert [pair[:2] for pair in near([("a", first, "en"), ("b", again, "en")])] == [("a", "b")]
    assert (
        near([("a", first, "en"), ("b", "Nobody may trade after the bell has rung.", "en")]) == []
    )


def test_documents_queries_and_qrels_are_those_written() -> None:
    texts = script("texts")
    for name, lines in (
        ("documents.jsonl", texts.document_lines(games())),
        ("queries.jsonl", texts.query_lines(games())),
    ):
        assert (ROOT / name).read_text(encoding="utf-8").splitlines() == list(lines)
    lines = list(script("judgments").qrels_lines(judgments()))
    assert (ROOT / "qrels.txt").read_text(encoding="utf-8").splitlines() == lines


def test_no_relevant_passage_lies_in_two_parts() -> None:
    relevant = script("judgments").RELEVANT
    splits: dict[str, set[str]] = defaultdict(set)
    for each in judgments():
        if each.grade >= relevant:
            splits[each.document].add(queries()[each.query]["split"])
            assert each.document.rpartition("-")[0] == queries()[each.query]["group"]
    assert {len(split) for split in splits.values()} == {1}


@pytest.mark.parametrize("source", SOURCES)
def test_the_best_five_of_every_source_are_judged(source: str) -> None:
    judged = {(each.query, each.document) for each in judgments()}
    depth = script("judgments").POOL_DEPTH
    for query, documents in ranked(source).items():
        assert {(query, document) for document in documents[:depth]} <= judged


def test_a_tenth_was_read_twice_and_agreement_is_what_the_datasheet_says() -> None:
    module = script("judgments")
    twice = [each for each in judgments() if module.is_read_twice(each.query, each.document)]
    assert all(each.second is not None for each in twice)
    assert 0.08 < len(twice) / len(judgments()) < 0.12
    own = [
        (each.first, each.second)
        for each in twice
        if each.document.rpartition("-")[0] == queries()[each.query]["group"]
    ]
    sheet = (ROOT / "README.md").read_text(encoding="utf-8")
    for kappa in (module.cohens_kappa(own), module.cohens_kappa(own, is_weighted=True)):
        assert f"{kappa:.2f}".lstrip("0") in sheet


def test_kappa_is_that_of_the_textbook() -> None:
    kappa = script("judgments").cohens_kappa
    # Cohen 1960: agreement .7 where .5 is expected by chance.
    pairs = [(0, 0)] * 35 + [(1, 1)] * 35 + [(0, 1)] * 15 + [(1, 0)] * 15
    assert kappa(pairs) == pytest.approx(0.4)
    assert kappa([(0, 0), (3, 3), (1, 1)]) == 1


def test_every_candidate_has_a_rerank_score_in_the_unit_space() -> None:
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    lines = (ROOT / "rerank/late-interaction.jsonl").read_text(encoding="utf-8").splitlines()
    for row in map(json.loads, lines):
        scores[row["query"]][row["document"]] = row["score"]
    for query in queries():
        pool = {document for source in SOURCES for document in ranked(source).get(query, [])}
        assert pool <= scores[query].keys()
        assert all(0 <= score <= 1 for score in scores[query].values())


@cache
def aligned_test_queries() -> fb.AlignedRuns:
    dataset = fb.load_dataset(ROOT / "dataset.yaml")
    runs = dataset.aligned(list(dataset.runs))
    return runs.subset(np.array([queries()[query]["split"] == "test" for query in runs.queries]))


@pytest.mark.parametrize("name", ["question x2", "bonus", "rrf without hyde", "convex", "by type"])
def test_the_page_has_the_means_that_the_experiment_gives(name: str) -> None:
    page = (ROOT.parents[1] / "docs/studies/referee.md").read_text(encoding="utf-8")
    experiment, _ = fb.read_experiment(ROOT.parents[1] / "experiments/referee.yaml")
    [scores] = fb.evaluate_systems(experiment.systems[name], aligned_test_queries(), "nDCG@10")
    assert f"| {scores.values.mean():.4f} |".replace("0.", ".") in page
