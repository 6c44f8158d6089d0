"""Which queries open campaigns hold out, and that no reader of files has them."""

import hashlib
import shutil
from pathlib import Path

import pytest

import fusion_bench as fb
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.io.campaign_ledger import read_events
from fusion_bench.io.dataset import Dataset, load_dataset, load_judge
from fusion_bench.io.dataset_cache import Cache
from fusion_bench.io.held_out import LEDGER_NAME, read_everything, refuse_copy, show_held_out
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.io.provenance import ListMeta, write_with_meta
from tests.campaign.masking import (
    CAMPAIGN,
    FOLDER,
    HELD_OUT,
    NAMED,
    close_campaign,
    make_projects,
    open_campaign,
)
from tests.gate.cases import QUERIES
from tests.golden.project import make_project

#: What changes the ids of queries in every file of a copy.
RENAMED = "renamed-"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_project(tmp_path)
    open_campaign(tmp_path / FOLDER)
    return tmp_path / FOLDER


def load(folder: Path) -> Dataset:
    return load_dataset(folder / "dataset.yaml", cache=False)


def known_queries(dataset: Dataset) -> set[str]:
    tables = [table for each in dataset.repeats for table, _ in each.keys]
    records = (dataset.queries, dataset.declared_queries or {})
    return {q for known in (*records, *(t.queries for t in tables)) for q in known}


def test_a_dataset_is_that_without_the_held_out_queries(tmp_path: Path) -> None:
    masked, reduced = (load(project / FOLDER) for project in make_projects(tmp_path))
    assert known_queries(masked).isdisjoint(HELD_OUT)
    assert len(masked.qrels) == QUERIES - len(HELD_OUT)
    assert masked.held_out.counts == {CAMPAIGN: len(HELD_OUT)}
    assert masked.held_out.queries == set(HELD_OUT)
    assert masked.fingerprint == reduced.fingerprint
    assert masked.digests() == reduced.digests()
    assert not reduced.held_out.counts
    assert set(load_judge(masked, "people").queries).isdisjoint(HELD_OUT)


@pytest.mark.parametrize("by", ["queries", "judgments", "groups"])
def test_queries_are_known_by_id_by_judgments_and_by_group(tmp_path: Path, by: str) -> None:
    folder = make_project(tmp_path) / FOLDER
    lines = [f'{{"id": "q{q}", "group": "q{q}"}}\n' for q in range(QUERIES)]
    (folder / "queries.jsonl").write_text("".join(lines))
    open_campaign(folder, by=by)
    assert load(folder).held_out.queries == set(HELD_OUT)
    assert known_queries(load(folder)).isdisjoint(HELD_OUT)


def test_queries_of_a_held_out_group_and_their_copies_are_held_out_too(folder: Path) -> None:
    lines = [f'{{"id": "q{q}", "group": "g{q // 10}"}}\n' for q in (0, 1, 2)]
    (folder / "queries.jsonl").write_text("".join(lines))
    assert {"q0", "q1", "q2"} <= load(folder).held_out.queries
    assert "q4" not in load(folder).held_out.queries
    for name in ("qrels.txt", "a.trec", "b.trec", "r.trec"):
        text = (folder / name).read_text()
        renamed = "".join(f"{RENAMED}{line}" for line in text.splitlines(keepends=True))
        (folder / name).write_text(text + renamed)
    (folder / "queries.jsonl").write_text('{"id": "q0"}\n')
    assert known_queries(load(folder)).isdisjoint({*HELD_OUT, *(f"{RENAMED}{q}" for q in HELD_OUT)})
    assert f"{RENAMED}q0" in known_queries(load(folder))
    qrels = load_qrels(folder / "qrels.txt")
    assert not [query for query in qrels.queries if query.removeprefix(RENAMED) in HELD_OUT]


def test_unjudged_queries_are_not_held_out_for_having_no_judgment(tmp_path: Path) -> None:
    folder = make_project(tmp_path) / FOLDER
    path = folder / "qrels.txt"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line.replace("q1 0 d1 1", "q1 0 d1 0") for line in lines))
    open_campaign(folder, ("q1",))
    with (folder / "a.trec").open("a") as file:
        file.write("new Q0 d1 1 1 a\n")
    dataset = load_dataset(folder / "dataset.yaml", cache=False, every_query=True)
    assert dataset.held_out.queries == {"q1"}
    assert "new" in dataset.qrels.queries


@pytest.mark.parametrize("name", ["qrels.txt", "people.csv"])
def test_files_alone_lack_them_too(folder: Path, tmp_path: Path, name: str) -> None:
    link = tmp_path / "link.txt"
    link.symlink_to(folder / name)
    for path in (folder / name, *([link] if name == "qrels.txt" else [])):
        assert set(load_qrels(path).queries).isdisjoint(HELD_OUT)
    assert set(load_run(folder / "a.trec").queries).isdisjoint(HELD_OUT)
    assert "q0" in load_run(folder / "a.trec").queries


def test_every_repeat_of_a_list_lacks_them(folder: Path) -> None:
    shutil.copy(folder / "a.trec", folder / "a-1.trec")
    shutil.copy(folder / "b.trec", folder / "a-2.trec")
    path = folder / "dataset.yaml"
    path.write_text(path.read_text().replace("path: a.trec", "path: 'a-*.trec'"))
    dataset = load(folder)
    assert len(dataset.repeats) == 2
    assert known_queries(dataset).isdisjoint(HELD_OUT)


def test_the_record_beside_a_rerank_list_lacks_them(folder: Path) -> None:
    path = folder / "r.trec"
    facts = {"list_sha256": "", "created": "", "dataset": "mine", "system": "s", "depth": 1}
    names = {"q0": "fallback", HELD_OUT[0]: "fallback"}
    meta = ListMeta(
        **facts, score_space="unit", asked="a/b", providers={"a/b": tuple(names)}, degraded=names
    )
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    write_with_meta(path, data, meta.model_copy(update={"list_sha256": digest}))
    dataset = load(folder)
    assert dataset.degraded("r") == ("q0",)
    assert not NAMED.search(dataset.provenance["r"].model_dump_json())


def test_an_alignment_in_the_cache_belongs_to_what_is_held_out(tmp_path: Path) -> None:
    folder = make_project(tmp_path) / FOLDER
    cache = Cache(tmp_path / "cache", max_bytes=1 << 30)

    def queries() -> set[str]:
        dataset = load_dataset(folder / "dataset.yaml", cache=cache)
        return set(dataset.aligned(["a", "b"]).queries)

    whole = queries()
    open_campaign(folder)
    assert queries() == whole - set(HELD_OUT)
    close_campaign(folder)
    assert queries() == whole == queries()


def test_after_close_and_for_the_referee_nothing_is_held_out(folder: Path) -> None:
    with read_everything():
        assert len(load(folder).qrels) == QUERIES
    assert len(load(folder).qrels) < QUERIES
    close_campaign(folder)
    assert len(load(folder).qrels) == len(load_qrels(folder / "qrels.txt")) == QUERIES


def test_an_override_shows_them_and_is_logged_once_a_command(folder: Path) -> None:
    for command in ("eval", "eval", "tune"):
        with show_held_out("Ada", command):
            assert len(load(folder).qrels) == QUERIES
            assert len(load_qrels(folder / "qrels.txt")) == QUERIES
    assert len(load(folder).qrels) < QUERIES
    overrides = [event for event in read_events(folder / LEDGER_NAME) if event.event == "override"]
    assert [(event.by, event.command) for event in overrides] == [("Ada", "eval"), ("Ada", "tune")]
    assert {event.campaign for event in overrides} == {CAMPAIGN}


def test_an_override_needs_a_name_and_a_log(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ConfigError("read-only")

    monkeypatch.setattr("fusion_bench.io.campaign_ledger.append_events", refuse)
    with show_held_out("Grace"), pytest.raises(ConfigError, match="read-only"):
        load(folder)
    with pytest.raises(ConfigError, match="name"), fb.show_held_out(" "):
        pass


def test_a_damaged_ledger_is_refused_by_every_reader(folder: Path) -> None:
    path = folder / LEDGER_NAME
    path.write_text(path.read_text().replace('"event":"open"', '"event":"close"'))
    for read in (lambda: load(folder), lambda: load_qrels(folder / "qrels.txt")):
        with pytest.raises(DataError, match=f"{LEDGER_NAME}:1"):
            read()


def test_judgments_of_held_out_queries_alone_and_copies_are_refused(folder: Path) -> None:
    path = folder / "qrels.txt"
    kept = [line for line in path.read_text().splitlines(keepends=True) if NAMED.search(line)]
    path.write_text("".join(kept))
    with pytest.raises(DataError, match=CAMPAIGN):
        load_qrels(path)
    with pytest.raises(ConfigError, match=CAMPAIGN):
        refuse_copy(folder / "qrels.txt")
    close_campaign(folder)
    refuse_copy(folder / "qrels.txt")
