"""The command in a real pseudo-terminal: keys in, a file out, and the terminal as it was."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests import tiny

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
        """Read until a text is on the screen."""
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
