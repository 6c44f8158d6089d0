from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.errors import DataError
from fusion_bench.tune.looks.ledger import (
    Look,
    format_look,
    read_looks,
    related_looks,
    update_ledger,
)
from fusion_bench.tune.looks.renew_ledger import main
from fusion_bench.util.digests import add_line_digest


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
        ("{", "its digest does not match"),
        ("[" * 100_000, "its digest does not match"),
        (format_look(look("a")).replace("0.02", "0.01").rstrip(), "its digest does not match"),
        (format_look(look("a")).rstrip()[:-1], "its digest does not match"),
        (add_line_digest('{"version":3}'), "version: "),
        (add_line_digest('{"version":2}'), "experiment: Field required"),
        ('{"version": 1}', "python -m fusion_bench.tune.looks.renew_ledger "),
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


def test_a_ledger_of_version_1_is_renewed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "looks.jsonl"
    looks = [look("a"), look("b", verdict="keep")]
    path.write_text(
        look("a").model_copy(update={"version": 1}).model_dump_json() + f"\n{format_look(looks[1])}"
    )
    with pytest.raises(DataError, match=rf"looks.jsonl:1: .*renew_ledger {path}$"):
        read_looks(path)
    assert main([str(path)]) == 0
    assert "1 line renewed" in capsys.readouterr().out
    assert read_looks(path) == looks
    path.write_text('{"version": 1}\n')
    assert main([str(path)]) == 2
    assert path.read_text() == '{"version": 1}\n'
