"""Judging in a terminal: query beside document, one key a grade."""

from __future__ import annotations

import codecs
import os
import re
import select
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.judging.judge_files import MOST_NOTE, Judgment, format_time
from fusion_bench.judging.judge_work import JudgeTask
from fusion_bench.judging.pools import Pair, PooledDocument
from fusion_bench.util.formatting import escape_control_chars

#: The keys that have names of their own, as bytes of a terminal.
NAMES: Final = {
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x1b": "escape",
    "\x04": "end",
    "": "end",
}
#: What a key without a character sends, as ECMA-48 and xterm have it.
SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z~]|O[A-Za-z])?")
#: The beginning of one: the rest may come with the next bytes, and holds digits.
BEGINNING: Final = re.compile(r"\x1b(?:\[[0-9;?]*|O)?")
#: Seconds to wait for the rest, so that Escape alone is known as such.
SEQUENCE_SECONDS: Final = 0.1
#: The longest that Ctrl-C waits, in seconds.
SIGNAL_SECONDS: Final = 1.0
#: Bytes that are read at once: the sequence of a key, or what was pasted.
MOST_BYTES: Final = 1024


class Keyboard:
    """Keys as they are pressed, without echo.

    Args:
        descriptor: Of a terminal in cbreak mode; see :func:`open_keyboard`.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")
        self._pending = ""

    def read_key(self) -> str:
        """The next key: a character, or a name of :data:`NAMES`; ``end`` = no more will come."""
        while not self._pending:
            if not self._read_more():
                return NAMES[""]
        while BEGINNING.fullmatch(self._pending):
            ready, _, _ = select.select([self._descriptor], [], [], SEQUENCE_SECONDS)
            if not ready or not self._read_more():
                break
        sequence = SEQUENCE.match(self._pending)
        key = self._pending[0] if sequence is None else sequence[0]
        self._pending = self._pending[len(key) :]
        return NAMES.get(key, key)

    def _read_more(self) -> bool:
        """Wait for bytes; False = no more will come."""
        # A signal just before a call that blocks is handled only when this call returns.
        while not select.select([self._descriptor], [], [], SIGNAL_SECONDS)[0]:
            pass
        data = os.read(self._descriptor, MOST_BYTES)
        self._pending += self._decoder.decode(data)
        return bool(data)


@contextmanager
def open_keyboard(descriptor: int) -> Iterator[Keyboard]:
    """Read single keys while the context lasts; the terminal is as it was afterwards.

    Raises:
        FusionBenchError: This system has no such terminals.
    """
    try:
        import termios
        import tty
    except ImportError:  # pragma: no cover - not on POSIX systems
        raise FusionBenchError(
            "this system's terminal gives no single keys: judge in a spreadsheet with "
            "--export FILE and --import FILE"
        ) from None
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield Keyboard(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@dataclass(eq=False)
class JudgingSession:
    """One sitting of one judge.

    Attributes:
        task: What is to be judged; every grade is in the judge's file before a call returns.
        note: What the judge remarked on the open document.
    """

    task: JudgeTask
    note: str = ""
    _skipped: set[Pair] = field(default_factory=set)
    _history: list[PooledDocument] = field(default_factory=list)
    _reopened: PooledDocument | None = None
    _group: int = 0

    @property
    def current(self) -> PooledDocument | None:
        """The open document; None = nothing is left but what was skipped."""
        if self._reopened is not None:
            return self._reopened
        for n in range(self._group, len(self.task.groups)):
            for each in self.task.arrange(self.task.groups[n]):
                if self.task.grade_of(each.pair) is None and each.pair not in self._skipped:
                    self._group = n
                    return each
        return None

    @property
    def done(self) -> int:
        """Documents that this judge has judged, in this sitting or before."""
        documents = (each.pair for group in self.task.groups for each in group)
        known = self.task.known
        return sum(p not in known and p in self.task.file.judgments for p in documents)

    @property
    def skipped(self) -> int:
        """Documents that are left for another sitting."""
        return len(self._skipped)

    @property
    def judged(self) -> int:
        """Documents judged in this sitting."""
        return len(self._history) - len(self._skipped)

    def give_grade(self, grade: int) -> bool:
        """Grade the open document; False where the scale has no such grade."""
        document = self.current
        if document is None or not 0 <= grade <= self.task.greatest:
            return False
        judge = self.task.file.judge
        judgment = Judgment(*document.pair, grade, judge, self.note, format_time())
        self.task.file.add(judgment)
        self._leave(document)
        return True

    def skip(self) -> None:
        """Leave the open document for another sitting."""
        document = self.current
        if document is not None:
            self._skipped.add(document.pair)
            self._leave(document)

    def undo(self) -> bool:
        """Open the document before again, without its grade; False where there is none."""
        if not self._history:
            return False
        document = self._history.pop()
        judgment = self.task.file.judgments.get(document.pair)
        self.note = "" if judgment is None else judgment.note
        if document.pair in self._skipped:
            self._skipped.discard(document.pair)
        else:
            self.task.file.remove(document.pair)
        self._reopened = document
        self._group = 0
        return True

    def write_note(self, text: str) -> None:
        """Remark something on the open document; it is kept with its grade."""
        self.note = " ".join(text.split())[:MOST_NOTE]

    def _leave(self, document: PooledDocument) -> None:
        self._history.append(document)
        self._reopened, self.note = None, ""


#: Columns from which query and document stand side by side.
WIDE: Final = 100
#: Rows that frames, progress and keys take.
FRAME_ROWS: Final = 4
#: Share of a wide terminal that the query gets.
QUERY_SHARE: Final = 1 / 3
HELP: Final = """\
A grade says how well the document answers the query. 0: not at all. The greatest: in full.
Which system returned it, and where, is hidden: it must not decide.

0–{greatest}  grade the document    s  skip it for now
u    undo the last key      n  write a note, Enter ends it
space, b  next, last page of a long document
q    quit; every grade is in the file already"""


def _panel(lines: list[Text], title: str) -> Panel:
    shown = Text(escape_control_chars(title))
    return Panel(Text("\n").join(lines), title=shown, title_align="left")


def _wrap(text: str, width: int, console: Console) -> list[Text]:
    """Lines of a text whose control characters are made visible."""
    lines = (escape_control_chars(line.expandtabs(4).rstrip()) for line in text.split("\n"))
    return list(Text("\n".join(lines)).wrap(console, max(1, width)))


NO_TEXT: Final = "(no text)"
#: Characters of a document that are shown: to wrap more takes longer than a key should.
MOST_TEXT: Final = 100_000


class Screen(Protocol):
    """Where frames are shown."""

    def update(self, *renderables: RenderableType) -> None:
        """Show a frame in place of the last one."""


class Keys(Protocol):
    """Where keys come from."""

    def read_key(self) -> str:
        """The next key."""


@dataclass(eq=False)
class JudgeLoop:
    """A sitting at a terminal.

    Attributes:
        session: What keys do.
        queries: Query id → text; a query may lack one.
        documents: Document id → text; likewise.
        console: Gives the size of the terminal.
        screen: Where frames are shown.
        keys: Where keys come from.
    """

    session: JudgingSession
    queries: Mapping[str, str]
    documents: Mapping[str, str]
    console: Console
    screen: Screen
    keys: Keys
    _message: str = ""
    _top: int = 0
    _rest: int = 0
    _page: int = 1
    _is_helping: bool = False
    _opened: PooledDocument | None = field(default=None)

    def run(self) -> None:
        """Judge until nothing is left, or the judge quits."""
        while (document := self.session.current) is not None:
            if document != self._opened:
                self._opened, self._top = document, 0
            self._show(document)
            self._message = ""
            key = self.keys.read_key()
            if key in {"q", "end"}:
                return
            self._press(key, document)

    def _press(self, key: str, document: PooledDocument) -> None:
        if key == "?":
            self._is_helping, self._top = not self._is_helping, 0
            return
        if key in {" ", "page down", "down"}:
            self._top += min(self._page if key != "down" else 1, self._rest)
        elif key in {"b", "page up", "up"}:
            self._top = max(0, self._top - (self._page if key != "up" else 1))
        elif self._is_helping:
            self._is_helping, self._top = False, 0
        elif key.isascii() and key.isdigit():
            if not self.session.give_grade(int(key)):
                self._message = f"the scale ends at {self.session.task.greatest}"
        elif key == "s":
            self.session.skip()
        elif key == "u":
            self._message = "" if self.session.undo() else "nothing to undo in this sitting"
        elif key == "n":
            self._read_note(document)
        else:
            self._message = f"no such key: {key!r}" if key.isprintable() else "no such key"

    def _read_note(self, document: PooledDocument) -> None:
        before = self.session.note
        text = before
        while True:
            self.session.note = text
            self._show(document, is_noting=True)
            key = self.keys.read_key()
            if key in {"enter", "end"}:
                self.session.write_note(text)
                return
            if key == "escape":
                self.session.note = before
                return
            text = text[:-1] if key == "backspace" else text + (key if len(key) == 1 else "")

    def _show(self, document: PooledDocument, *, is_noting: bool = False) -> None:
        """Draw the screen; the document begins at its line ``top``."""
        width, height = self.console.width, self.console.height
        is_wide = width >= WIDE
        query_width = round(width * QUERY_SHARE) if is_wide else width
        text_width = (width - query_width if is_wide else width) - 4
        query_lines = _wrap(
            self.queries.get(document.query, NO_TEXT), query_width - 4, self.console
        )
        above = 0 if is_wide else min(len(query_lines), max(1, height // 4 - 1))
        rows = max(1, height - FRAME_ROWS - (above + 2 if above else 0))
        body = self.documents.get(document.document, NO_TEXT)
        if (rest := len(body) - MOST_TEXT) > 0:
            body = f"{body[:MOST_TEXT]}\n\n({rest:,} more characters are not shown)"
        title = f"document {document.document}"
        if self._is_helping:
            body, title = HELP.format(greatest=self.session.task.greatest), "help"
        lines = _wrap(body, text_width, self.console)
        top = min(self._top, max(0, len(lines) - 1))
        self._page, self._rest = rows, max(0, len(lines) - top - rows)
        if self._rest:
            title = f"{self._rest} more lines: space · {title}"
        query = _panel(query_lines[: above or rows], f"query {document.query}")
        text = _panel(lines[top : top + rows], title)
        parts: RenderableType = Group(query, text)
        if is_wide:
            grid = Table.grid(expand=True)
            grid.add_column(width=query_width)
            grid.add_column(width=width - query_width)
            grid.add_row(query, text)
            parts = grid
        session, total = self.session, self.session.task.size
        shown = f"{min(session.done + 1, total)} of {total} · judge {session.task.file.judge}"
        shown += f" · {self._message}" if self._message else ""
        progress = Text(shown, style="bold", no_wrap=True, overflow="ellipsis")
        self.screen.update(Group(parts, progress, self._key_line(is_noting=is_noting)))

    def _key_line(self, *, is_noting: bool) -> Text:
        note = escape_control_chars(self.session.note)
        if is_noting:
            line = f"note: {note}▏ (Enter keeps it, Esc drops it)"
            return Text(line, no_wrap=True, overflow="ellipsis")
        shown = f" · note: {note}" if note else ""
        keys = f"0–{self.session.task.greatest} grade  s skip  u undo  n note  q quit  ? help"
        return Text(f"{keys}{shown}", style="dim", no_wrap=True, overflow="ellipsis")


#: The greatest grade that one key can give.
MOST_KEY: Final = 9


def require_keys(greatest: int) -> None:
    """Raise where a grade of the scale has no key.

    Raises:
        ConfigError: The scale is too long.
    """
    if greatest > MOST_KEY:
        raise ConfigError(
            f"grades up to {greatest} have no keys: keys give 0 to {MOST_KEY}. Judge in a "
            "spreadsheet: --export FILE, then --import FILE"
        )


def require_terminal() -> None:
    """Raise where nobody can press a key or see a document.

    Raises:
        ConfigError: Standard input or output is no terminal.
    """
    for name, stream in (("input", sys.stdin), ("output", sys.stdout)):
        if not stream.isatty():
            raise ConfigError(
                f"standard {name} is no terminal: run this in one, or judge in a spreadsheet with "
                "--export FILE and --import FILE"
            )


def judge_in_terminal(
    task: JudgeTask, queries: Mapping[str, str], documents: Mapping[str, str]
) -> JudgingSession:
    """Judge until nothing is left, or the judge quits.

    Args:
        task: What to judge.
        queries: Query id → text.
        documents: Document id → text.

    Returns:
        What was done in this sitting; the judge's file has it already.

    Raises:
        ConfigError: A grade of the scale has no key.
        FusionBenchError: The judge's file cannot be written, or another process has it.
    """
    require_keys(task.greatest)
    session = JudgingSession(task)
    console = Console(highlight=False)
    keyboard = open_keyboard(sys.stdin.fileno())
    with task.file.lock(), keyboard as keys, console.screen() as screen:
        JudgeLoop(session, queries, documents, console, screen, keys).run()
    return session
