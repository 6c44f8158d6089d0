from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.errors import DataError
from fusion_bench.tune.looks import (
    LedgerEntry,
    format_look,
    read_looks,
    related_looks,
    update_ledger,
)
from fusion_bench.util.digests import add_line_digest


def look(
    *queries: str, numbers: str = "0", verdict: str | None = None, version: Literal[1, 2, 3] = 3
) -> LedgerEntry:
    return LedgerEntry(
        version=version,
        experiment="e",
        system="s",
        measure="nDCG@10",
        date="2026-01-01",
        numbers=numbers,
        number=1,
        level=0.02,
        verdict=verdict,
        queries=queries,
    )


#: Fields that a look has in a ledger only.
UNWRITTEN = {"line": None, "previous": ()}


def add(path: Path, made: LedgerEntry) -> None:
    update_ledger(path, lambda looks: [*looks, made])


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "looks.jsonl"
    assert read_looks(path) == []
    written = [look("a", "b"), look("c", numbers="1", verdict="ship")]
    for made in written:
        add(path, made)
    assert [each.model_copy(update=UNWRITTEN) for each in read_looks(path)] == written
    assert [each.line for each in read_looks(path)] == [1, 2]
    assert path.read_text().count("\n") == 2
    assert [p.name for p in path.parent.iterdir()] == ["looks.jsonl"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "its digest does not match"),
        ("[" * 100_000, "its digest does not match"),
        (format_look(look("a")).replace("0.02", "0.01").rstrip(), "its digest does not match"),
        (format_look(look("a")).rstrip()[:-1], "its digest does not match"),
        (add_line_digest('{"version":4}'), "version: "),
        (add_line_digest('{"version":2}'), "experiment: Field required"),
        ('{"version":1,"numbers":"0"}', "experiment: Field required"),
    ],
)
def test_a_malformed_line_is_named_and_nothing_is_written(
    tmp_path: Path, line: str, said: str
) -> None:
    path = tmp_path / "looks.jsonl"
    add(path, look("a"))
    path.write_text(f"{path.read_text()}{line}\n")
    before = path.read_bytes()
    with pytest.raises(DataError, match=r"looks\.jsonl:2: ") as error:
        add(path, look("b"))
    assert said in str(error.value)
    assert path.read_bytes() == before


def _add_many(path: Path, first: int) -> None:
    for n in range(first, first + 10):
        add(path, look("a", numbers=f"{n:x}"))


def test_no_look_of_concurrent_processes_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "looks.jsonl"
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
    looks = [look(*sorted(queries)) for queries in held_out]
    assert related_looks(looks, sorted(asked)) == _slow_related(looks, asked)


def test_lines_of_version_1_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "looks.jsonl"
    old = [look("a", version=1), look("b", verdict="keep", version=2)]
    path.write_text("".join(map(format_look, old)))
    assert "sha256" not in lines_of(path)[0]
    assert read_looks(path) == old
    add(path, look("a", numbers="5"))
    assert [made.line for made in read_looks(path)] == [None, None, 3]
    path.write_text(path.read_text().replace("2026", "2027", 1))
    with pytest.raises(DataError, match=r":3: .*line before it"):
        read_looks(path)


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True)


def make_ledger(path: Path, *, old: int = 0, new: int = 4) -> None:
    """Lines of an earlier version, and chained ones."""
    path.write_text("".join(format_look(look("a", numbers=f"{n}", version=2)) for n in range(old)))
    for number in range(new):
        add(path, look("a", numbers=f"{number + 5}"))


@pytest.mark.parametrize(("old", "removed"), [(0, 0), (0, 2), (2, 0), (2, 1), (2, 2), (2, 4)])
def test_a_line_that_is_removed_is_missed_by_those_after_it(
    tmp_path: Path, old: int, removed: int
) -> None:
    path = tmp_path / "looks.jsonl"
    make_ledger(path, old=old)
    assert [made.line for made in read_looks(path)] == [None] * old + [old + n for n in range(1, 5)]
    lines = lines_of(path)
    del lines[removed]
    path.write_text("".join(lines))
    with pytest.raises(DataError, match="line before it"):
        read_looks(path)


def test_an_edited_line_with_a_new_digest_is_missed_too(tmp_path: Path) -> None:
    path = tmp_path / "looks.jsonl"
    make_ledger(path)
    first = read_looks(path)[0].model_copy(update={"queries": ("b",)})
    path.write_text("".join([format_look(first), *lines_of(path)[1:]]))
    with pytest.raises(DataError, match=r"looks\.jsonl:2: .*before it"):
        read_looks(path)


def test_a_verdict_that_comes_later_breaks_no_chain(tmp_path: Path) -> None:
    path = tmp_path / "looks.jsonl"
    make_ledger(path)
    update_ledger(path, lambda all_: [all_[0].model_copy(update={"verdict": "keep"}), *all_[1:]])
    assert [made.verdict for made in read_looks(path)] == ["keep", None, None, None]


def test_lines_of_two_branches_follow_the_same_line_and_the_next_follows_both(
    tmp_path: Path,
) -> None:
    path = tmp_path / "looks.jsonl"
    make_ledger(path, old=1, new=1)
    shared = path.read_text()
    sides = []
    for numbers in ("a", "b"):
        path.write_text(shared)
        add(path, look("a", numbers=numbers))
        sides.append(lines_of(path)[-1])
    path.write_text(shared + "".join(sides))
    add(path, look("a", numbers="c"))
    merged = read_looks(path)
    assert [made.line for made in merged] == [None, 2, 3, 3, 5]
    assert set(merged[-1].previous) == {made.digest for made in merged[2:4]}
    for removed in (2, 3):
        path.write_text("".join(line for n, line in enumerate(lines_of(path)) if n != removed))
        with pytest.raises(DataError, match="was removed"):
            read_looks(path)
        path.write_text(shared + "".join([*sides, format_look(merged[-1])]))


def test_a_number_belongs_to_a_line_of_version_3(tmp_path: Path) -> None:
    path = tmp_path / "looks.jsonl"
    for made in (look("a"), look("a", version=2).model_copy(update={"line": 1})):
        path.write_text(f"{add_line_digest(made.model_dump_json())}\n")
        with pytest.raises(DataError, match=r"line: .*version 3"):
            read_looks(path)
