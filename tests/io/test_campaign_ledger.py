"""The ledger of campaigns: its chain, its lock, what git has of it."""

import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from fusion_bench.errors import DataError
from fusion_bench.io import campaign_ledger
from fusion_bench.io.campaign_ledger import (
    CampaignEvent,
    HeldOutDigests,
    append_events,
    check_committed,
    read_events,
)
from fusion_bench.io.held_out import LEDGER_NAME
from fusion_bench.util.digests import add_line_digest
from tests.git_project import commit_all

CAMPAIGN = "0123456789abcdef"
HELD_OUT = HeldOutDigests(queries=("aa", "bb"), judgments=("cc",), groups=("aa", "bb"))
OPEN = CampaignEvent(
    event="open", campaign=CAMPAIGN, date="2026-01-01", held_out=HELD_OUT, plan={"asks": 1000}
)


def ask(number: int) -> CampaignEvent:
    """An ask with a configuration of the usual length."""
    config = {"runs": ["a", "b"], "fusion": {"method": "rrf", "k": number + 0.5, "text": "x" * 900}}
    return CampaignEvent(
        event="ask", campaign=CAMPAIGN, date="2026-01-01", number=number, config=config
    )


def answer(number: int) -> CampaignEvent:
    return CampaignEvent(
        event="answer", campaign=CAMPAIGN, date="2026-01-01", number=number, answer="keep"
    )


def make_ledger(path: Path, asks: int = 3) -> list[CampaignEvent]:
    return append_events(path, lambda _: [OPEN, *map(ask, range(1, asks + 1))])


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "made" / LEDGER_NAME
    assert read_events(path) == []
    written = make_ledger(path)
    assert append_events(path, lambda events: [answer(len(events))])[:4] == written
    campaign_ledger._read.clear()
    read = read_events(path)
    assert [event.line for event in read] == [1, 2, 3, 4, 5]
    assert read[0].held_out == HELD_OUT
    assert read[0].plan == OPEN.plan
    assert [event.event for event in read] == ["open", "ask", "ask", "ask", "answer"]
    assert read[2].config == ask(2).config
    assert [p.name for p in path.parent.iterdir()] == [LEDGER_NAME]


def _swap(lines: list[str]) -> list[str]:
    return [lines[0], lines[2], lines[1], *lines[3:]]


def _edit(lines: list[str]) -> list[str]:
    return [line.replace('"number":2', '"number":7') for line in lines]


def _edit_with_digest(lines: list[str]) -> list[str]:
    event = json.loads(lines[1]) | {"number": 7}
    del event["sha256"]
    return [lines[0], f"{add_line_digest(json.dumps(event))}\n", *lines[2:]]


def _merge(lines: list[str]) -> list[str]:
    """The last line of another branch stands beside that of this one."""
    event = CampaignEvent.model_validate(
        {k: v for k, v in json.loads(lines[-1]).items() if k != "sha256"} | {"number": 9}
    )
    return [*lines, f"{add_line_digest(event.dump())}\n"]


@pytest.mark.parametrize(
    ("change", "line", "said"),
    [
        (_swap, 2, "before it"),
        (_edit, 3, "digest"),
        (_edit_with_digest, 3, "before it"),
        (_merge, 5, "before it"),
        (lambda lines: lines[1:], 1, "before it"),
        (lambda lines: [*lines[:2], *lines[3:]], 3, "before it"),
        (lambda lines: [*lines[:3], lines[3][:-20]], 4, "digest"),
        (lambda lines: [*lines, "{\n"], 5, "digest"),
        (lambda lines: [*lines, lines[3]], 5, "before it"),
        (lambda lines: [*lines, add_line_digest('{"version":2}')], 5, "version"),
    ],
)
@pytest.mark.parametrize("is_known", [False, True])
def test_a_changed_ledger_is_refused(
    tmp_path: Path,
    change: Callable[[list[str]], list[str]],
    line: int,
    said: str,
    *,
    is_known: bool,
) -> None:
    path = tmp_path / LEDGER_NAME
    make_ledger(path)
    path.write_text("".join(change(lines_of(path))))
    if not is_known:
        campaign_ledger._read.clear()
    before = path.read_bytes()
    for use in (read_events, lambda path: append_events(path, lambda _: [answer(1)])):
        with pytest.raises(DataError, match=rf"{LEDGER_NAME}:{line}: .*{said}"):
            use(path)
    assert path.read_bytes() == before


def test_line_ends_of_another_system_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / LEDGER_NAME
    written = make_ledger(path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n").rstrip())
    assert read_events(path) == written
    assert len(append_events(path, lambda _: [answer(1)])) == 5
    assert len(read_events(path)) == 5


def _append(path: Path, event: CampaignEvent) -> list[CampaignEvent]:
    return append_events(path, lambda _: [event])


def _append_many(path: Path, first: int) -> None:
    for number in range(first, first + 10):
        _append(path, ask(number))


def test_no_event_of_concurrent_processes_is_lost(tmp_path: Path) -> None:
    path = tmp_path / LEDGER_NAME
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_append_many, args=(path, n)) for n in (1, 11, 21)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(event.number or 0 for event in read_events(path)) == list(range(1, 31))


def _append_and_die(path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        _append(path, answer(1))


def test_a_killed_append_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / LEDGER_NAME
    written = make_ledger(path)
    worker = multiprocessing.get_context("fork").Process(target=_append_and_die, args=(path,))
    worker.start()
    worker.join()
    assert worker.exitcode == -signal.SIGKILL
    campaign_ledger._read.clear()
    assert read_events(path) == written
    assert len(append_events(path, lambda _: [answer(1)])) == len(written) + 1


@pytest.fixture
def committed(tmp_path: Path) -> Path:
    path = tmp_path / "datasets" / "made" / LEDGER_NAME
    make_ledger(path)
    commit_all(tmp_path)
    return path


def test_a_ledger_may_grow_and_is_not_checked_without_a_repository(
    committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_committed(committed, read_events(committed))
    check_committed(committed, append_events(committed, lambda _: [answer(1)]))
    monkeypatch.setenv("PATH", "")
    check_committed(committed, [])
    monkeypatch.undo()
    (tmp_path / ".git").rename(tmp_path / "other")
    check_committed(committed, [])


@pytest.mark.parametrize(("kept", "line"), [(3, 4), (1, 2), (0, 1)])
def test_a_ledger_restored_from_an_older_copy_is_refused(
    committed: Path, kept: int, line: int
) -> None:
    lines = lines_of(committed)[:kept]
    if lines:
        committed.write_text("".join(lines))
    else:
        committed.unlink()
    with pytest.raises(DataError, match=f"line {line} .*committed"):
        check_committed(committed, read_events(committed))


def test_another_ledger_in_the_place_of_the_committed_one_is_refused(committed: Path) -> None:
    committed.unlink()
    append_events(committed, lambda _: [OPEN, *map(ask, range(11, 21))])
    with pytest.raises(DataError, match=r"line 2 .*committed"):
        check_committed(committed, read_events(committed))
