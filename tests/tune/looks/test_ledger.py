from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.errors import DataError
from fusion_bench.tune.looks.ledger import Look, read_looks, related_looks, update_ledger


def look(*queries: str, numbers: str = "0", verdict: str | None = None) -> Look:
    return Look(
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


def add(path: Path, made: Look) -> None:
    update_ledger(path, lambda looks: [*looks, made])


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "looks.jsonl"
    assert read_looks(path) == []
    written = [look("a", "b"), look("c", numbers="1", verdict="ship")]
    for made in written:
        add(path, made)
    assert read_looks(path) == written
    assert path.read_text().count("\n") == 2
    assert [p.name for p in path.parent.iterdir()] == ["looks.jsonl"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "Invalid JSON"),
        ("[]", "not a line of a ledger of looks"),
        ('{"version": 2}', "version: "),
        ('{"version": 1}', "experiment: Field required"),
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


def _slow_related(looks: list[Look], queries: set[str]) -> list[Look]:
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
