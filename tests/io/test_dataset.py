"""Datasets: their description, name, place."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from fusion_bench.checks.dataset_facts import dataset_notices, describe_dataset
from fusion_bench.config.models import StrictModel
from fusion_bench.data.document_rows import COLUMN_NAMES, QRELS_ROLES, RUN_ROLES
from fusion_bench.errors import AlignmentError, ConfigError, DataError, UnknownNameError
from fusion_bench.evaluation.explanation import explain_query
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_cache import Cache
from fusion_bench.io.dataset_config import (
    DatasetSpec,
    QrelsColumns,
    RunColumns,
    find_dataset,
    list_datasets,
    make_dataset_name,
    read_spec,
)
from tests import tiny
from tests.tiny import DATASET, EXPERIMENT, edit

ATTACK = Path(__file__).parents[2] / "datasets/attack/dataset.yaml"


def test_everything_is_there(tmp_path: Path) -> None:
    dataset = load_dataset(tiny.make(tmp_path) / DATASET)
    assert dataset.name == "tiny"
    assert dataset.qrels.to_dict()["q1"] == {"d1": 1, "d2": 0}
    assert {name: run.roles for name, run in dataset.runs.items()} == {
        "a": {"keyword"},
        "b": {"question", "semantic"},
    }
    assert dataset.spaces == {"r": "unit"}
    assert dataset.splits == ("dev", "test")
    assert dataset.queries["q3"].group == "g2"
    known = {"queries.type", "queries.group", "queries.split"}
    assert set(dataset.digests()) == {"qrels", *known, "runs/a", "runs/b", "rerank/r"}


def test_only_the_lists_that_are_asked_for_are_read(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    for name in ("a", "r"):
        (root / f"datasets/tiny/{name}.trec").write_text("broken\n", encoding="utf-8")
    dataset = load_dataset(root / DATASET, runs={"b"}, rerankers={""})
    assert set(dataset.runs) == {"b"}
    assert dataset.rerankers == {}
    assert {part for part in dataset.digests() if "/" in part} == {"runs/b"}
    with pytest.raises(DataError, match=r"a\.trec:1: 1 column,"):
        load_dataset(root / DATASET, rerankers=())
    with pytest.raises(DataError, match=r"r\.trec:1: 1 column,"):
        load_dataset(root / DATASET, runs=())


def test_options_and_queries_of_a_dataset_may_be_missing(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    edit(root, DATASET, "roles: [keyword]", "rank_from: column, on_duplicate: best_rank")
    edit(root, "datasets/tiny/a.trec", "q1 Q0 d2 1 9 a", "q1 Q0 d2 3 9 a\nq1 Q0 d2 4 9 a")
    run = load_dataset(root / DATASET).runs["a"]
    assert list(run.to_dict()["q1"]) == ["d1", "d2"]
    assert run.duplicates == 1
    assert run.roles == frozenset()
    root = tiny.make(tmp_path)
    edit(root, DATASET, "queries: queries.jsonl\n", "")
    dataset = load_dataset(root / DATASET)
    assert dataset.queries == {}
    assert dataset.splits == ()


def fingerprint(root: Path) -> str:
    return load_dataset(root / DATASET).fingerprint


def test_a_fingerprint_is_of_the_contents(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    first = fingerprint(root)
    for name in ("a.trec", "b.trec", "r.trec", "qrels.txt", "queries.jsonl"):
        path = root / "datasets/tiny" / name
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_bytes(gzip.compress("".join(reversed(lines)).encode()))
        assert fingerprint(root) == first


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("a.trec", "q1 Q0 d1 2 8 a", "q1 Q0 d1 2 8.5 a"),
        ("r.trec", "q1 Q0 d1 1 0.9 r", "q1 Q0 d1 1 0.91 r"),
        ("qrels.txt", "q2 0 d3 2", "q2 0 d3 1"),
        ("queries.jsonl", '"split": "dev"', '"split": "train"'),
        ("queries.jsonl", '"group": "g2"', '"group": "g1"'),
    ],
)
def test_a_fingerprint_tells_any_change(name: str, old: str, new: str, tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    first = fingerprint(root)
    edit(root, f"datasets/tiny/{name}", old, new)
    assert fingerprint(root) != first


@pytest.mark.parametrize(
    "given", ["../qrels.txt", "/etc/passwd.txt", "x/../../qrels.txt", "..", "a/../../tiny2/q.txt"]
)
def test_a_path_that_leaves_the_folder_is_refused(given: str, tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    edit(root, DATASET, "qrels: qrels.txt", f"qrels: {given}")
    with pytest.raises(ConfigError, match=r"dataset\.yaml:2:.*qrels:.*dataset's"):
        load_dataset(root / DATASET)


def test_a_link_may_stay_inside_and_may_not_leave(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    folder = root / "datasets/tiny"
    (folder / "qrels.txt").rename(folder / "real.txt")
    (folder / "qrels.txt").symlink_to("real.txt")
    assert len(load_dataset(root / DATASET).qrels.queries) == 4
    (folder / "real.txt").rename(root / "outside.txt")
    (folder / "qrels.txt").unlink()
    (folder / "qrels.txt").symlink_to(root / "outside.txt")
    with pytest.raises(ConfigError, match="dataset's folder:"):
        load_dataset(root / DATASET)


def linked_outside(tmp_path: Path, declared: str, *, folder: bool = False) -> Path:
    """A dataset whose qrels, or whose folder of them, are a link into the folder ``store``."""
    root = tiny.make(tmp_path)
    home, store = root / "datasets/tiny", root / "store/deep"
    store.mkdir(parents=True)
    (home / "qrels.txt").rename(store / "qrels.txt")
    if folder:
        (home / "shared").symlink_to(store)
        edit(root, DATASET, "qrels: qrels.txt", "qrels: shared/qrels.txt")
    else:
        (home / "qrels.txt").symlink_to(store / "qrels.txt")
    text = declared.format(root=root)
    edit(root, DATASET, "name: tiny", f"name: tiny\nfollow_links_to: {text}")
    return root


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize(
    "declared", ["['{root}/store']", "[../../store]", "[elsewhere, ../../store/deep]"]
)
def test_a_link_may_lead_into_a_declared_store(declared: str, folder: bool, tmp_path: Path) -> None:
    root = linked_outside(tmp_path, declared, folder=folder)
    assert len(load_dataset(root / DATASET).qrels.queries) == 4


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("[../../stor]", "leaves the dataset's"),
        ("[]", "under 'follow_links_to'"),
        ("../../store", "follow_links_to"),
    ],
)
def test_a_link_elsewhere_is_refused(declared: str, text: str, tmp_path: Path) -> None:
    root = linked_outside(tmp_path, declared)
    with pytest.raises(ConfigError, match=text):
        load_dataset(root / DATASET)


def test_a_declared_store_allows_links_and_no_paths(tmp_path: Path) -> None:
    root = linked_outside(tmp_path, "[../../store]")
    edit(root, DATASET, "qrels: qrels.txt", "qrels: ../../store/deep/qrels.txt")
    with pytest.raises(ConfigError, match=r"dataset's folder:.*it$"):
        load_dataset(root / DATASET)


def test_links_of_folders_and_in_circles(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    (root / "link").symlink_to(root / "datasets/tiny")
    assert load_dataset(root / "link/dataset.yaml").name == "tiny"
    path = root / "datasets/tiny/qrels.txt"
    path.unlink()
    path.symlink_to("qrels.txt")
    with pytest.raises((ConfigError, DataError), match=r"qrels"):
        load_dataset(root / DATASET)


def test_queries_of_another_dataset_are_refused(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    (root / "datasets/tiny/queries.jsonl").write_text('{"id": "Q1"}\n', encoding="utf-8")
    with pytest.raises(AlignmentError, match=r"'Q1' here, 'q1' in"):
        load_dataset(root / DATASET)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("name: tiny", "name: ../tiny", ":1: name: string"),
        ("name: tiny", "name: .hidden", ":1: name: string"),
        ("name: tiny", "version: '2'", ": name: is required"),
        ("unit}", "units}", ":8: rerank.r.score_space: "),
        (", score_space: unit", "", ":8: rerank.r.score_space: "),
        ("name: tiny", "name: tiny\nbinary_relevance: 0", ":2: binary_relevance: "),
        ("name: tiny", "name: tiny\nversion: 2", ":2: version: .*given 2"),
        ("name: tiny", "name: tiny\njudgments: all", ":2: judgments: input"),
        ("name: tiny", "name: tiny\nlicence: MIT", ":2: licence: "),
        ("[keyword]", "keyword", ":5: runs.a.roles:"),
        ("{path: a.trec, roles: [keyword]}", "a.trec", ":5: runs.a:"),
        ("a.trec,", "a.trec, format: trek,", r":5: runs\.a\.format: .*'trek'"),
        ("a.trec,", "a.trec, columns: {grade: a},", r":5: runs\.a\.columns\.grade:"),
        ("a.trec,", "a.trec, columns: {query: a, rank: a},", r":5: runs\.a\.columns:"),
        ("a.trec,", "a.trec, columns: [a],", r":5: runs\.a\.columns:"),
        ("qrels.txt", "{path: q.txt, columns: {score: a}}", r":2: qrels\.columns\.score:"),
        ("qrels.txt", "{format: trec}", r":2: qrels\.path:"),
        ("qrels.txt", "[a]", ":2: qrels: "),
    ],
)
def test_what_breaks_a_rule_is_said_with_its_line(
    old: str, new: str, problem: str, tmp_path: Path
) -> None:
    root = tiny.make(tmp_path)
    edit(root, DATASET, old, new)
    with pytest.raises(ConfigError, match=rf"dataset\.yaml{problem}"):
        read_spec(root / DATASET)


def test_a_file_s_own_format_and_columns(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    folder = root / "datasets/tiny"
    expected = load_dataset(root / DATASET)
    grades = [line.split() for line in (folder / "qrels.txt").read_text().splitlines()]
    (folder / "judged").write_text(
        "Search;Page;Stars\n" + "".join(f"{q};{d};{grade}.0\n" for q, _, d, grade in grades)
    )
    (folder / "a.trec").rename(folder / "input.a")
    edit(
        root,
        DATASET,
        "qrels: qrels.txt",
        "qrels: {path: judged, format: csv, columns: "
        "{query: Search, document: Page, grade: Stars}}",
    )
    edit(root, DATASET, "path: a.trec", "path: input.a, format: trec")
    dataset = load_dataset(root / DATASET)
    assert dataset.digests() == expected.digests()
    assert dataset.fingerprint == expected.fingerprint
    assert dataset.spec.model_dump(mode="json")["qrels"]["path"] == "judged"
    assert expected.spec.model_dump(mode="json")["qrels"] == "qrels.txt"
    edit(root, DATASET, "path: judged", "path: jugded")
    with pytest.raises(DataError, match=r"yaml:2:.*qrels\.path:.*'judg"):
        load_dataset(root / DATASET)


def test_a_folder_of_answers_is_a_run(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    folder = root / "datasets/tiny/answers"
    folder.mkdir()
    for query, documents in load_dataset(root / DATASET).runs["a"].to_dict().items():
        hits = [{"_id": document, "_score": score} for document, score in documents.items()]
        (folder / f"{query}.json").write_text(json.dumps({"hits": {"hits": hits}}))
    expected = load_dataset(root / DATASET)
    edit(root, DATASET, "path: a.trec", "path: answers")
    assert load_dataset(root / DATASET).digests() == expected.digests()
    (root / "outside.json").write_text("{}")
    (folder / "q9.json").symlink_to(root / "outside.json")
    with pytest.raises(ConfigError, match=r"runs\.a\.path:.*'answers/q9\.json'"):
        load_dataset(root / DATASET)


@pytest.mark.parametrize(("model", "roles"), [(QrelsColumns, QRELS_ROLES), (RunColumns, RUN_ROLES)])
def test_columns_are_named_by_the_roles_that_readers_know(
    model: type[StrictModel], roles: tuple[str, ...]
) -> None:
    assert tuple(model.model_fields) == roles
    assert set(roles) <= set(COLUMN_NAMES)


def test_a_name_is_looked_for_in_the_folders_in_their_order(tmp_path: Path) -> None:
    first, second = tiny.make(tmp_path / "1"), tiny.make(tmp_path / "2")
    folders = [first / "datasets", second / "datasets"]
    assert find_dataset("tiny", folders) == first / DATASET
    assert find_dataset("tiny", folders[::-1]) == second / DATASET
    assert find_dataset(str(second / "datasets/tiny"), []) == second / DATASET
    assert find_dataset(str(second / DATASET), folders) == second / DATASET
    assert list_datasets(folders[0]) == [first / DATASET]


@pytest.mark.parametrize("name", ["../tiny", "x/../tiny", "tiny/", "", ".", "..", "a\0b", "tinny"])
def test_a_name_does_not_leave_the_folders(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tiny.make(tmp_path)
    (root / "datasets/x").mkdir()
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    with pytest.raises(UnknownNameError, match=r"e\.yaml:1: dataset:.*known:"):
        find_dataset(name, [root / "datasets"], where="e.yaml:1: dataset")


def test_the_message_names_the_folders_that_were_looked_in(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_dataset("x", [tmp_path, tmp_path / "b"])
    said = f"in x/dataset.yaml, {tmp_path}, {tmp_path / 'b'}: unknown dataset 'x' (known: none): "
    assert str(caught.value).startswith(f"{said}name the ")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "search").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


@pytest.mark.parametrize(
    "given", ["dataset.yaml", "shop/dataset.yaml", "data/shop", "../data.yaml", "./ds", "ds/", "ds"]
)
def test_a_path_starts_at_the_experiment_or_else_here(given: str, project: Path) -> None:
    file = Path(given) if given.endswith("yaml") else Path(given, "dataset.yaml")
    base = project / "search"
    with pytest.raises(ConfigError) as caught:
        find_dataset(given, [], where="e.yaml:1: dataset", base=base)
    said = str(caught.value)
    assert said.startswith("e.yaml:1: dataset: ")
    assert str(base / file) in said
    assert str(file) in said.replace(str(base / file), "")
    here = project / "work" / file
    here.parent.mkdir(parents=True, exist_ok=True)
    here.write_text("")
    assert find_dataset(given, [], base=base).resolve() == here.resolve()
    assert find_dataset(given, []).resolve() == here.resolve()
    there = base / file
    if there.resolve() == here.resolve():
        return
    there.parent.mkdir(parents=True, exist_ok=True)
    there.write_text("")
    with pytest.raises(ConfigError) as caught:
        find_dataset(given, [], where="e.yaml:1: dataset", base=base)
    assert f"is two files, {there} and {file}: " in str(caught.value)
    here.unlink()
    assert find_dataset(given, [], base=base) == there
    here.symlink_to(there)
    assert find_dataset(given, [], base=base) == there


def test_a_missing_file_names_one_like_it(project: Path) -> None:
    (project / "search/dataset.yaml").write_text("")
    with pytest.raises(ConfigError, match=r"'.*dataset\.y"):
        find_dataset("datset.yaml", [], base=project / "search")
    with pytest.raises(ConfigError, match=r"^x{300}\.yaml: .*for x{300}\.yaml"):
        find_dataset(f"{'x' * 300}.yaml", [])
    with pytest.raises(ConfigError, match="no such file"):
        find_dataset("a\0/b.yaml", [], base=project)


def test_a_missing_folder_names_where_it_was_looked_for(project: Path) -> None:
    base, named = project / "search", project / "datasets"
    with pytest.raises(UnknownNameError) as caught:
        find_dataset("data/shop", [named], where="e.yaml:1: dataset", base=base)
    looked = f"in {base}/data/shop/dataset.yaml, data/shop/dataset.yaml, {named}: "
    assert str(caught.value).startswith(f"e.yaml:1: dataset: {looked}unknown dataset 'data/")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("log", "log"),
        ("my search.log", "my-search.log"),
        (".hidden", "hidden"),
        ("検索", "default"),
        ("", "default"),
        ("a/b", "a-b"),
    ],
)
def test_any_text_becomes_a_name_that_a_dataset_may_have(text: str, name: str) -> None:
    assert make_dataset_name(text, "default") == name
    field = DatasetSpec.model_fields["name"]
    assert TypeAdapter(field.rebuild_annotation()).validate_python(name) == name


# ── ``when`` in a dataset.yaml, from the file to the numbers


INTENTS = """\
{"id": "q1", "intent": "meta", "level": 2, "easy": true, "tags": ["x"]}
{"id": "q2", "intent": "rules", "level": 2.5, "easy": false, "note": null}
{"id": "q3", "intent": "meta", "level": 2}
{"id": "q4"}
"""


def make(root: Path, when: str, queries: str = INTENTS) -> Path:
    tiny.make(root, queries=queries)
    edit(root, DATASET, "roles: [keyword]", f"roles: [keyword], when: {when}")
    return root / DATASET


@pytest.mark.parametrize(
    ("when", "on"),
    [
        ("{intent: [meta]}", ["q1", "q3"]),
        ("{intent: meta}", ["q1", "q3"]),
        ("{intent: [meta, rules]}", ["q1", "q2", "q3"]),
        ("{level: [2]}", ["q1", "q3"]),
        ("{level: 2.5}", ["q2"]),
        ("{easy: true}", ["q1"]),
        ("{intent: meta, easy: [true, false]}", ["q1"]),
        ("{intent: [other]}", []),
    ],
)
def test_a_run_answers_the_queries_for_which_it_is_on(
    when: str, on: list[str], tmp_path: Path
) -> None:
    dataset = load_dataset(make(tmp_path, when))
    assert [query for query, ranked in dataset.runs["a"].to_dict().items() if ranked] == on
    runs = dataset.aligned(["a", "b"])
    assert [query for query, off in zip(runs.queries, runs.off[0], strict=True) if not off] == on
    assert not runs.off[1].any()


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("{intnet: [meta]}", r"yaml:5: runs\.a\.when:"),
        ("{tags: [x]}", "field 'tags' of"),
        ("{text: [x]}", "'text' is different"),
        ("{intent: []}", r"runs\.a\.when\.intent: .*at least 1 item"),
        ("{}", "at least 1 item"),
        ("{intent: [meta, meta]}", "'meta' is listed"),
        ("{intent: [{a: b}]}", "text is needed"),
        ("[meta]", "a mapping of"),
    ],
)
def test_bad_conditions_are_refused(when: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        load_dataset(make(tmp_path, when))


def test_conditions_need_queries_and_no_rerank_list(tmp_path: Path) -> None:
    path = make(tmp_path, "{intent: [meta]}")
    edit(tmp_path, DATASET, "queries: queries.jsonl\n", "")
    with pytest.raises(ConfigError, match=r"dataset\.yaml:4:.*runs\.a\.when:"):
        load_dataset(path)
    tiny.make(tmp_path)
    edit(tmp_path, DATASET, "score_space: unit", "score_space: unit, when: {intent: [meta]}")
    with pytest.raises(ConfigError, match="unknown key 'when'"):
        load_dataset(tmp_path / DATASET)


def test_a_fingerprint_tells_conditions_and_intents(tmp_path: Path) -> None:
    prints = {load_dataset(tiny.make(tmp_path / "0", queries=INTENTS) / DATASET).fingerprint}
    for n, when in enumerate(("{intent: [meta]}", "{intent: [rules]}", "{level: [2.5]}"), start=1):
        prints.add(load_dataset(make(tmp_path / str(n), when)).fingerprint)
    assert len(prints) == 3  # rules and level 2.5 are one query
    other = INTENTS.replace("rules", "faq")
    prints.add(load_dataset(make(tmp_path / "4", "{intent: [meta]}", other)).fingerprint)
    assert len(prints) == 4


def test_the_cache_keeps_alignments_apart(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", max_bytes=10**7)
    path = make(tmp_path, "{intent: [meta]}")
    for when in ("[meta]", "[rules]"):
        for _ in range(2):
            dataset = load_dataset(path, cache=cache)
            stored = dataset.aligned(["a", "b"])
            fresh = load_dataset(path, cache=False).aligned(["a", "b"])
            assert np.array_equal(stored.ranks, fresh.ranks)
            assert np.array_equal(stored.off, fresh.off)
        if when == "[meta]":
            edit(tmp_path, DATASET, "{intent: [meta]}", "{intent: [rules]}")


def test_the_description_counts_the_queries_that_switch_it_on(tmp_path: Path) -> None:
    dataset = load_dataset(make(tmp_path, "{intent: [meta]}"))
    facts: dict[str, Any] = describe_dataset(dataset)
    first, second = facts["runs"]
    assert (first["when"], first["on_queries"], first["queries"]) == ("intent: meta", 2, 2)
    assert (second["when"], second["on_queries"]) == (None, 4)
    assert any("for 2 of 4" in text for text in dataset_notices(dataset))
    never = load_dataset(make(tmp_path / "never", "{intent: [other]}"))
    assert any("no judged query" in text for text in dataset_notices(never))


def test_an_explanation_says_why_a_source_is_off(tmp_path: Path) -> None:
    make(tmp_path, "{intent: [meta]}")
    experiment, source = read_experiment(tmp_path / EXPERIMENT)
    folders = [tmp_path / "datasets"]
    explanation = explain_query(experiment, source, "q2", folders=folders)
    assert explanation.switched_off == {"a": "intent is rules"}
    assert {term.source for trace in explanation.traces for term in trace.terms} == {"b"}
    on = explain_query(experiment, source, "q1", folders=folders)
    assert on.switched_off == {}
