"""Keys, and what they leave in the file and on the screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from fusion_bench.judging import terminal
from tests.judging.judge.terminal.sittings import QUERIES, TEXTS, make_task, press, stored


def test_grades_are_kept_and_a_later_sitting_goes_on(tmp_path: Path) -> None:
    frames = press(make_task(tmp_path), "21q")
    assert stored(make_task(tmp_path)) == {"q1/d1": (2, ""), "q1/d3": (1, "")}
    assert "1 of 6 · judge ann" in frames[0]
    assert "3 of 6" in frames[2]
    later = press(make_task(tmp_path), "0012")
    assert "3 of 6" in later[0]
    assert len(later) == 4
    assert [grade for grade, _ in stored(make_task(tmp_path)).values()] == [2, 1, 0, 0, 1, 2]
    assert press(make_task(tmp_path), "") == []


def test_a_grade_is_in_the_file_before_the_next_document_is_shown(tmp_path: Path) -> None:
    task, seen = make_task(tmp_path), []

    def keys() -> Iterator[str]:
        for _ in range(3):
            seen.append(len(stored(task)))
            yield "1"

    press(task, keys())
    assert seen == [0, 1, 2]


def test_skipped_documents_come_back_in_the_next_sitting(tmp_path: Path) -> None:
    press(make_task(tmp_path), "s1sss1")
    assert [*stored(make_task(tmp_path))] == ["q1/d3", "q2/d2"]
    press(make_task(tmp_path), "3333")
    assert len(stored(make_task(tmp_path))) == 6


TOPIC = ["n", *"off topi", "backspace", *"ic", "enter", "0"]


@pytest.mark.parametrize(
    ("keys", "grades", "shown"),
    [
        ("u1u2s3uu0q", {"q1/d1": (2, ""), "q1/d3": (0, "")}, {1: "nothing to undo"}),
        (
            [*TOPIC, "n", *"dropped", "escape", "1", "q"],
            {"q1/d1": (0, "off topic"), "q1/d3": (1, "")},
            {6: "note: off t", 12: "note: off topic"},
        ),
        (["n", *"why", "enter", "1", "u", "2", "q"], {"q1/d1": (2, "why")}, {}),
        (
            ["9", "x", "\x01", "²", "q"],
            {},
            {1: "ends at 3", 2: "'x'", 3: "no such", 4: "no such"},
        ),
    ],
    ids=["undo", "notes", "undo of a note", "no such key"],
)
def test_keys(
    tmp_path: Path, keys: Iterable[str], grades: dict[str, object], shown: dict[int, str]
) -> None:
    frames = press(make_task(tmp_path), keys)
    assert stored(make_task(tmp_path)) == grades
    assert all(text in frames[place] for place, text in shown.items())
    assert "nothing to undo" in press(make_task(tmp_path), "uq")[1]  # of an earlier sitting


def test_help_hides_the_document_and_no_grade_slips_through(tmp_path: Path) -> None:
    frames = press(make_task(tmp_path), "?1?q")
    assert "undo the last" in frames[1]
    assert "Text of document" not in frames[1]
    assert "Text of document 1" in frames[2]
    assert stored(make_task(tmp_path)) == {}


def test_the_order_follows_the_grades_where_it_moves_to_front(tmp_path: Path) -> None:
    press(make_task(tmp_path, "move-to-front"), "10q")
    assert [*stored(make_task(tmp_path))] == ["q1/d1", "q1/d2"]


def test_documents_that_the_dataset_judged_are_not_asked_for(tmp_path: Path) -> None:
    frames = press(make_task(tmp_path, d1=1, d3=0), "2q")
    assert "1 of 4" in frames[0]
    assert [*stored(make_task(tmp_path))] == ["q1/d2"]


@pytest.mark.parametrize(("width", "is_wide"), [(120, True), (100, True), (99, False), (40, False)])
def test_a_narrow_terminal_stacks(tmp_path: Path, width: int, is_wide: bool) -> None:
    (frame,) = press(make_task(tmp_path), "", width=width)
    (head,) = (line for line in frame.splitlines() if "query" in line and "╭" in line)
    assert ("document d1" in head) == is_wide
    assert QUERIES["q1"] in frame
    assert "Text of document 1." in frame
    assert max(map(len, frame.splitlines())) <= width


@pytest.mark.parametrize(("width", "height"), [(120, 10), (60, 12), (20, 8)])
def test_long_documents_have_pages_and_no_frame_is_higher_than_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int, height: int
) -> None:
    lines = [f"line {n}" for n in range(40)]
    monkeypatch.setitem(TEXTS, "d1", "\n".join(lines))
    frames = press(make_task(tmp_path), [" "] * 60 + ["b"] * 60, width=width, height=height)
    assert all(len(frame.rstrip("\n").split("\n")) <= height for frame in frames)
    shown = "".join(frames)
    assert all(f" {line} " in shown for line in lines)
    assert "line 39" in frames[60]
    assert "line 39" not in frames[0]
    assert frames[-1] == frames[0]


def test_a_huge_document_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "MOST_TEXT", 20)
    monkeypatch.setitem(TEXTS, "d1", "x" * 1_220)
    (frame,) = press(make_task(tmp_path), "")
    assert "(1,200 more characters" in frame
    assert "x" * 21 not in frame


def test_a_document_cannot_move_the_cursor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TEXTS, "d1", "[bold]x[/bold]\x1b[2Jgone\ttab\x07")
    (frame,) = press(make_task(tmp_path), "")
    assert "[bold]x[/bold]" in frame
    assert not {"\x1b", "\x07"} & set(frame)


def test_no_rank_and_no_system_is_shown(tmp_path: Path) -> None:
    """Only ids, texts, progress and keys."""
    (frame,) = press(make_task(tmp_path), "")
    words = frame.translate({ord(each): " " for each in "│╭╮╰╯─"}).split()
    texts = [*QUERIES["q1"].split(), *TEXTS["d1"].split()]
    progress = ["1", "of", "6", "·", "judge", "ann"]
    keys = ["0–3", "grade", "s", "skip", "u", "undo", "n", "note", "q", "quit", "?", "help"]
    assert words == ["query", "q1", "document", "d1", *texts, *progress, *keys]
