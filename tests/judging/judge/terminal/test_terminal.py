"""Keys as terminals send them, what they leave in the file and on the screen, and the command in a
real pseudo-terminal.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.judging.terminal import Keyboard
from tests import tiny
from tests.judging.judge.terminal.sittings import QUERIES, TEXTS, make_task, press, stored


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    own, other = os.pipe()
    yield own, other
    os.close(own)


def test_keys_of_one_read(pipe: tuple[int, int]) -> None:
    own, other = pipe
    os.write(other, "1\x1b[6~é\x1b[15~\r\x7fq\x1b".encode())
    os.close(other)
    keyboard = Keyboard(own)
    keys = [keyboard.read_key() for _ in range(9)]
    assert keys == ["1", "page down", "é", "\x1b[15~", "enter", "backspace", "q", "escape", "end"]


def test_the_digits_of_a_split_sequence_are_no_grades(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow line may deliver a key byte by byte, and a letter by halves."""
    parts = iter([b"\x1b", b"[", b"3", b"~2", b"\xc3", b"\xa9"])
    monkeypatch.setattr(os, "read", lambda *_: next(parts))
    monkeypatch.setattr(select, "select", lambda *_: ([0], [], []))
    keyboard = Keyboard(pipe[0])
    assert [keyboard.read_key() for _ in range(3)] == ["\x1b[3~", "2", "é"]


def test_escape_alone_is_escape(pipe: tuple[int, int]) -> None:
    own, other = pipe
    os.write(other, b"\x1b")
    assert Keyboard(own).read_key() == "escape"
    os.close(other)


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


def test_documents_come_in_their_order_and_judged_ones_not(tmp_path: Path) -> None:
    press(make_task(tmp_path), "s1sss1")
    assert [*stored(make_task(tmp_path))] == ["q1/d3", "q2/d2"]
    press(make_task(tmp_path), "3333")
    assert len(stored(make_task(tmp_path))) == 6
    front, judged = tmp_path / "front", tmp_path / "judged"
    press(make_task(front, "move-to-front"), "10q")
    assert [*stored(make_task(front))] == ["q1/d1", "q1/d2"]
    frames = press(make_task(judged, d1=1, d3=0), "2q")
    assert "1 of 4" in frames[0]
    assert [*stored(make_task(judged))] == ["q1/d2"]


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


def test_a_document_is_cut_and_cannot_move_the_cursor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fusion_bench.judging.terminal.MOST_TEXT", 20)
    monkeypatch.setitem(TEXTS, "d1", "x" * 1_220)
    (frame,) = press(make_task(tmp_path), "")
    assert "(1,200 more characters" in frame
    assert "x" * 21 not in frame
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


#: Seconds: only a process that hangs takes so long.
PATIENCE = 60


class Terminal:
    """A pseudo-terminal of 110 columns with the command in it."""

    def __init__(self, root: Path) -> None:
        self.own, self.other = pty.openpty()
        fcntl.ioctl(self.other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 110, 0, 0))
        self.before = termios.tcgetattr(self.other)
        words = [sys.executable, "-m", "fusion_bench", "judge", "datasets/tiny", "--judge", "ann"]
        self.process = subprocess.Popen(
            words,
            cwd=root,
            env={**os.environ, "TERM": "xterm"},
            stdin=self.other,
            stdout=self.other,
            stderr=self.other,
        )
        self.seen = ""

    def wait_for(self, text: str) -> None:
        self.seen = ""
        while text not in self.seen:
            ready, _, _ = select.select([self.own], [], [], PATIENCE)
            assert ready, f"no {text!r} in {self.seen!r}"
            self.seen += os.read(self.own, 65_536).decode(errors="replace")

    def press(self, keys: str) -> None:
        os.write(self.own, keys.encode())


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tiny.make(tmp_path))
    yield opened
    opened.process.kill()
    opened.process.wait()
    os.close(opened.own)
    os.close(opened.other)


def test_a_sitting_that_is_killed_loses_the_open_document_alone(
    terminal: Terminal, tmp_path: Path
) -> None:
    terminal.wait_for("1 of 4")
    assert termios.tcgetattr(terminal.other)[3] != terminal.before[3]  # no echo, no lines
    terminal.press("2")
    terminal.wait_for("2 of 4")
    terminal.press("no\x7fué\r")
    terminal.wait_for("note: ué")
    terminal.press("1")
    terminal.wait_for("3 of 4")
    terminal.process.send_signal(signal.SIGKILL)
    terminal.process.wait(PATIENCE)
    rows = (tmp_path / "datasets/tiny/judgments/ann.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 3
    assert [row.split(",")[2:5] for row in rows[1:]] == [["2", "ann", ""], ["1", "ann", "ué"]]


def test_quitting_gives_the_terminal_back(terminal: Terminal) -> None:
    terminal.wait_for("1 of 4")
    terminal.press("1\x1b[6~q")
    terminal.wait_for("1 document judged, 0 skipped, 3 left")
    assert terminal.process.wait(PATIENCE) == 0
    assert termios.tcgetattr(terminal.other) == terminal.before


def test_ctrl_c_gives_the_terminal_back(terminal: Terminal) -> None:
    terminal.wait_for("1 of 4")
    terminal.process.send_signal(signal.SIGINT)
    terminal.wait_for("interrupted")
    assert terminal.process.wait(PATIENCE) == 130
    assert termios.tcgetattr(terminal.other) == terminal.before


def test_elsewhere_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tiny.make(tmp_path))
    assert main(["judge", "datasets/tiny"]) == 2
    err = capsys.readouterr().err
    assert "standard input" in err
    assert "--export FILE" in err
    assert not (tmp_path / "datasets/tiny/judgments").exists()
