"""Looks at held-out queries: their ledger, their number, their level."""

import json
import multiprocessing
import os
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import DataError
from fusion_bench.experiment.settings import LookSettings
from fusion_bench.io.fingerprints import judgment_digests, query_digests
from fusion_bench.io.looks import (
    LedgerEntry,
    format_line,
    read_ledger,
    read_looks,
    related_looks,
    update_ledger,
)
from fusion_bench.report.tuning_texts import describe_look
from fusion_bench.tune.looks import (
    LookCounter,
    find_ledger,
    look_level,
    numbers_digest,
    power_at_level,
    query_factor,
)
from fusion_bench.util.digests import add_line_digest
from tests.git_project import commit_all
from tests.tune.cases import make_look

#: Fields that a look has in a ledger only.
UNWRITTEN = {"line": None, "previous": (), "query_set": None, "count": None}


def add(path: Path, made: LedgerEntry) -> None:
    update_ledger(path, lambda looks: [*looks, made])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "looks.jsonl"


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "looks.jsonl"
    assert read_looks(path) == []
    written = [make_look("a", "b"), make_look("c", numbers="1", verdict="ship")]
    for made in written:
        add(path, made)
    assert [each.model_copy(update=UNWRITTEN) for each in read_looks(path)] == written
    assert [each.line for each in read_looks(path)] == [2, 4]  # each after its queries
    add(path, make_look("a", "b", numbers="2"))
    assert len(lines_of(path)) == 5
    assert [line.count('"a"') for line in lines_of(path)] == [1, 0, 0, 0, 0]
    assert json.loads(lines_of(path)[4])["count"] == 2
    assert [p.name for p in path.parent.iterdir()] == ["looks.jsonl"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "its digest"),
        ("[" * 100_000, "its digest"),
        (format_line(make_look("a")).replace("0.02", "0.01").rstrip(), "its digest"),
        (format_line(make_look("a")).rstrip()[:-1], "its digest"),
        (add_line_digest('{"version":5}'), "version: "),
        (add_line_digest('{"version":2}'), "experiment: Field required"),
        ('{"version":1,"numbers":"0"}', "experiment: Field required"),
    ],
)
def test_a_malformed_line_is_named_and_nothing_is_written(path: Path, line: str, said: str) -> None:
    add(path, make_look("a"))
    path.write_text(f"{path.read_text()}{line}\n")
    before = path.read_bytes()
    with pytest.raises(DataError, match=r"looks\.jsonl:3: ") as error:
        add(path, make_look("b"))
    assert said in str(error.value)
    assert path.read_bytes() == before


def _add_many(path: Path, first: int) -> None:
    for n in range(first, first + 10):
        add(path, make_look("a", numbers=f"{n:x}"))


def test_no_look_of_concurrent_processes_is_lost(path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_add_many, args=(path, 10 * n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(int(made.numbers, 16) for made in read_looks(path)) == list(range(30))


def _slow_related(looks: list[LedgerEntry], queries: set[str]) -> list[LedgerEntry]:
    for _ in looks:
        for made in looks:
            if queries & set(made.queries):
                queries = queries | set(made.queries)
    return [made for made in looks if queries & set(made.queries)]


sets_of_queries = st.sets(st.sampled_from("0123456789abcdef"), min_size=1, max_size=4)


@given(st.lists(sets_of_queries, max_size=8), sets_of_queries)
def test_links_between_looks_are_followed(held_out: list[set[str]], asked: set[str]) -> None:
    looks = [make_look(*sorted(queries)) for queries in held_out]
    assert related_looks(looks, sorted(asked)) == _slow_related(looks, asked)


def test_lines_of_version_1_are_read_as_they_are(path: Path) -> None:
    old = [make_look("a", version=1), make_look("b", verdict="keep", version=2)]
    path.write_text("".join(map(format_line, old)))
    assert "sha256" not in lines_of(path)[0]
    assert read_looks(path) == old
    add(path, make_look("a", numbers="5"))
    assert [made.line for made in read_looks(path)] == [None, None, 4]
    path.write_text(path.read_text().replace("2026", "2027", 1))
    with pytest.raises(DataError, match=r":3: .*line before it"):
        read_looks(path)


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True)


def make_ledger(path: Path, *, old: int = 0, new: int = 4) -> None:
    """Lines of an earlier version, and chained ones."""
    path.write_text(
        "".join(format_line(make_look("a", numbers=f"{n}", version=2)) for n in range(old))
    )
    for number in range(new):
        add(path, make_look("a", numbers=f"{number + 5}"))


@pytest.mark.parametrize(("old", "removed"), [(0, 0), (0, 2), (2, 0), (2, 1), (2, 2), (2, 4)])
def test_a_line_that_is_removed_is_missed_by_those_after_it(
    path: Path, old: int, removed: int
) -> None:
    make_ledger(path, old=old)
    assert [made.line for made in read_looks(path)] == [None] * old + [old + n for n in range(2, 6)]
    lines = lines_of(path)
    del lines[removed]
    path.write_text("".join(lines))
    with pytest.raises(DataError, match="line before it"):
        read_looks(path)


def test_an_edited_line_with_a_new_digest_is_missed_too(path: Path) -> None:
    make_ledger(path)
    first = read_ledger(path)[0].model_copy(update={"queries": ("b",)})
    path.write_text("".join([format_line(first), *lines_of(path)[1:]]))
    with pytest.raises(DataError, match=r"looks\.jsonl:2: .*before it"):
        read_looks(path)


def test_a_verdict_that_comes_later_breaks_no_chain(path: Path) -> None:
    make_ledger(path)
    first = read_looks(path)[0]
    closed = first.model_copy(update={"verdict": "keep"})
    update_ledger(path, lambda lines: [closed if line == first else line for line in lines])
    assert [made.verdict for made in read_looks(path)] == ["keep", None, None, None]


def test_lines_of_two_branches_follow_the_same_line_and_the_next_follows_both(
    path: Path,
) -> None:
    make_ledger(path, old=1, new=1)
    shared = path.read_text()
    sides = []
    for numbers in ("a", "b"):
        path.write_text(shared)
        add(path, make_look("a", numbers=numbers))
        sides.append(lines_of(path)[-1])
    path.write_text(shared + "".join(sides))
    add(path, make_look("a", numbers="c"))
    merged = read_looks(path)
    assert [made.line for made in merged] == [None, 3, 4, 4, 6]
    assert set(merged[-1].previous) == {made.digest for made in merged[2:4]}
    for removed in (3, 4):
        path.write_text("".join(line for n, line in enumerate(lines_of(path)) if n != removed))
        with pytest.raises(DataError, match="was removed"):
            read_looks(path)
        path.write_text(shared + "".join([*sides, format_line(merged[-1])]))


def test_a_number_belongs_to_a_line_of_version_3(path: Path) -> None:
    for made in (make_look("a"), make_look("a", version=2).model_copy(update={"line": 1})):
        path.write_text(f"{add_line_digest(made.model_dump_json())}\n")
        with pytest.raises(DataError, match=r"line: .*version 3"):
            read_looks(path)


def ask(counter: LookCounter, queries: Sequence[str], numbers: str = "0") -> LedgerEntry:
    return counter.open_look(make_look(*query_digests(queries), numbers=numbers))


def names(first: int, last: int) -> list[str]:
    return [f"q{n}" for n in range(first, last)]


@pytest.fixture
def counter(tmp_path: Path) -> LookCounter:
    return LookCounter(tmp_path / "looks.jsonl")


def test_added_queries_new_splits_and_new_numbers_are_further_looks(counter: LookCounter) -> None:
    asked = [
        (names(0, 10), "0"),
        (names(0, 20), "0"),  # queries were added
        (names(0, 20), "1"),  # other numbers
        (names(15, 30), "2"),  # another split
        (names(40, 50), "0"),  # no query in common
        (names(25, 45), "0"),  # joins both
    ]
    looks = [ask(counter, queries, numbers) for queries, numbers in asked]
    assert [look.number for look in looks] == [1, 2, 3, 4, 1, 6]
    levels = [0.02, 0.0025, 0.00125, 0.000625, 0.02, 0.00015625]
    assert [look.level for look in looks] == pytest.approx(levels)


def test_the_same_numbers_on_the_same_queries_are_no_new_look(counter: LookCounter) -> None:
    first = ask(counter, names(0, 10))
    counter.close_look(first, "too few queries")
    ask(counter, names(0, 10), "1")
    again = ask(counter, names(0, 10)[::-1])
    assert (again.number, again.level) == (first.number, first.level)
    described = counter.describe(again)
    assert described.is_repeated
    assert described.next_number == 3
    assert described.next_level == pytest.approx(0.00125)
    assert counter.path is not None
    assert [look.verdict for look in read_looks(counter.path)] == ["too few queries", None]


def test_the_price_of_the_first_look_and_of_the_next(counter: LookCounter) -> None:
    described = counter.describe(ask(counter, names(0, 10)))
    assert described.power == pytest.approx(0.773, abs=5e-4)
    assert described.next_number == 2
    assert described.next_level == pytest.approx(0.0025)
    assert described.next_query_factor == pytest.approx(1.70, abs=0.01)
    assert not described.is_repeated


def test_numbers_are_the_same_by_parameters_and_values_in_any_order_of_queries() -> None:
    default, tuned = np.array([0.1, 0.2]), np.array([0.3, 0.2])
    digest = numbers_digest("nDCG@10", {"k": 1, "b": 2}, ["x", "y"], default, tuned)
    turned = numbers_digest("nDCG@10", {"b": 2, "k": 1}, ["y", "x"], default[::-1], tuned[::-1])
    assert turned == digest
    noisy = numbers_digest("nDCG@10", {"k": 1, "b": 2}, ["x", "y"], default, tuned + 1e-14)
    assert noisy == digest
    others = [
        numbers_digest("RR@10", {"k": 1, "b": 2}, ["x", "y"], default, tuned),
        numbers_digest("nDCG@10", {"k": 2, "b": 2}, ["x", "y"], default, tuned),
        numbers_digest("nDCG@10", {"k": 1, "b": 2}, ["x", "y"], default, tuned + 0.1),
    ]
    assert digest not in others


def test_without_a_ledger_a_look_has_the_whole_level_and_says_why() -> None:
    counter = find_ledger(LookSettings(), alpha=0.05, base=None, dataset=None, out=None)
    look = ask(counter, names(0, 3))
    assert look.level == 0.025
    described = counter.describe(look)
    assert described.number is None
    assert "in memory" in described.note
    assert described.power == pytest.approx(0.8)


def test_the_ledger_stands_beside_the_dataset_or_where_the_file_says(tmp_path: Path) -> None:
    def find(settings: LookSettings) -> LookCounter:
        return find_ledger(
            settings, alpha=0.05, base=tmp_path / "base", dataset=tmp_path, out=tmp_path / "out"
        )

    assert find(LookSettings()).path == tmp_path / "looks.jsonl"
    named = find(LookSettings(file=Path("mine.jsonl")))
    assert named.path == tmp_path / "base" / "mine.jsonl"
    assert find(LookSettings(count=False)).path is None


@pytest.mark.parametrize("damage", ["deleted", "restored", "edited"])
def test_a_ledger_that_lacks_a_committed_look_is_refused(tmp_path: Path, damage: str) -> None:
    """Else the look after it would have the level of the first."""
    path = tmp_path / "looks.jsonl"
    for number in range(2):
        add(path, make_look("a", "b", numbers=f"{number}"))
    old = path.read_text().splitlines(keepends=True)[0]
    commit_all(tmp_path)

    def find() -> LookCounter:
        return find_ledger(LookSettings(), alpha=0.05, base=None, dataset=tmp_path, out=None)

    find().close_look(read_looks(path)[0], "keep")
    add(path, make_look("a", "b", numbers="3"))
    assert find().path == path  # a verdict and more looks are what a run adds
    path.unlink()
    if damage == "restored":
        path.write_text(old)
    if damage == "edited":
        add(path, make_look("a", "b", numbers="9"))
    line = 1 if damage == "deleted" else 2
    with pytest.raises(DataError, match=rf"line {line} .*committed.*looks are miscounted"):
        find()


def test_a_dataset_that_cannot_be_written_to_is_counted_in_the_output_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    ask(LookCounter(data / "looks.jsonl"), names(0, 5))
    monkeypatch.setattr(os, "access", lambda *_: False)
    counter = find_ledger(LookSettings(), alpha=0.05, base=None, dataset=data, out=out)
    assert counter.path == out / "looks.jsonl"
    assert ask(counter, names(0, 5), "1").number == 2  # the looks beside the dataset count
    assert ask(counter, names(0, 5)).number == 1  # and are not made again
    unnamed = find_ledger(LookSettings(), alpha=0.05, base=None, dataset=data, out=None)
    assert unnamed.path is None
    assert "cannot be written" in unnamed.note


def test_a_dataset_of_an_installed_package_is_counted_in_the_output_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = tmp_path / "packages/library/data", tmp_path / "out"
    data.mkdir(parents=True)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "packages"))
    counter = find_ledger(LookSettings(), alpha=0.05, base=None, dataset=data, out=out)
    assert counter.path == out / "looks.jsonl"
    assert "installed package" in counter.note


def test_a_plan_of_an_earlier_version_is_read_and_has_no_effect(path: Path) -> None:
    plan = {"max_queries": 20, "parameters": {"fusion.k": 10}, "tuned_on": ["a"]}
    add(path, make_look(*query_digests(names(0, 5)), plan=plan))
    assert read_looks(path)[0].plan == plan
    counter = LookCounter(path, max_queries=20)
    second = ask(counter, names(0, 20))
    assert second.number == 2
    assert second.level == pytest.approx(0.0025)
    assert "has no effect" in describe_look(counter.describe(second))
    assert "has no effect" not in describe_look(LookCounter(path).describe(second))


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.01])
def test_all_looks_together_spend_half_of_alpha(alpha: float) -> None:
    assert sum(look_level(j, alpha) for j in range(1, 60)) == pytest.approx(alpha / 2)


@pytest.mark.parametrize("level", [0.02, 0.0025, 0.000625])
def test_so_many_more_queries_restore_the_power(level: float) -> None:
    reach = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)
    shift = reach * query_factor(level) ** 0.5
    assert NormalDist().cdf(shift + NormalDist().inv_cdf(level)) == pytest.approx(0.8)
    assert power_at_level(level) < 0.8


def test_other_ids_of_the_same_queries_are_the_same_queries(counter: LookCounter) -> None:
    grades = {f"q{n}": {f"d{n}": 1, f"d{n + 1}": 2, "other": 0} for n in range(10)}
    renamed = {name.upper(): {**found, "new": 0} for name, found in grades.items()}
    looks = []
    for judged, numbers in ((grades, "0"), (renamed, "1")):
        digests = judgment_digests(Qrels.from_dict(judged), [*judged])
        asked = make_look(*query_digests(judged), numbers=numbers, judgments=digests)
        looks.append(counter.open_look(asked))
    assert [look.number for look in looks] == [1, 2]
    assert set(looks[0].queries).isdisjoint(looks[1].queries)


def test_judgments_that_several_queries_have_tell_none() -> None:
    grades = {"q1": {"d": 1}, "q2": {"d": 1, "e": 0}, "q3": {"e": 0}, "q4": {"e": 1}}
    assert len(judgment_digests(Qrels.from_dict(grades), [*grades, "unjudged"])) == 2
    assert judgment_digests(None, ["q1"]) == ()


def test_a_look_that_an_earlier_report_relies_on_is_missed(tmp_path: Path) -> None:
    out, ledger = tmp_path / "out", tmp_path / "looks.jsonl"
    out.mkdir()
    settings = LookSettings(file=ledger)

    def open_counter() -> LookCounter:
        return find_ledger(settings, alpha=0.05, base=None, dataset=tmp_path, out=out)

    first, described = open_counter(), None
    for n in range(2):
        described = first.describe(ask(first, names(0, 10), f"{n}"))
    assert described is not None
    assert (described.line, described.number) == (3, 2)
    report = {"dataset": "mine", "look": described.model_dump()}
    (out / "tuning.json").write_text(json.dumps(report))
    assert open_counter().describe_lost("mine") == ""
    whole = ledger.read_text()
    for rest in (whole.splitlines(keepends=True)[0], ""):
        ledger.write_text(rest)
        assert "line 3 of " in open_counter().describe_lost("mine")
        assert open_counter().describe_lost("another dataset") == ""
    ledger.unlink()
    ask(open_counter(), names(0, 10), "7")
    assert "look 2," in open_counter().describe_lost("mine")
    for text in ("", "{}", '{"dataset": "mine", "look": null}', "[" * 10_000):
        (out / "tuning.json").write_text(text)
        assert open_counter().earlier is None
