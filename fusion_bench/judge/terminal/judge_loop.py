"""The loop of a sitting: show a document, read a key, do what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from rich.console import Console, RenderableType

from fusion_bench.judge.pool.pool import PooledDocument
from fusion_bench.judge.terminal.session import Session
from fusion_bench.judge.terminal.view import Frame, render_frame

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

    session: Session
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
        session = self.session
        frame = Frame(
            query_id=document.query,
            query=self.queries.get(document.query, NO_TEXT),
            document_id=document.document,
            document=_cut(self.documents.get(document.document, NO_TEXT)),
            done=session.done,
            total=session.task.size,
            judge=session.task.file.judge,
            greatest=session.task.greatest,
            note=session.note,
            is_noting=is_noting,
            is_helping=self._is_helping,
            message=self._message,
            top=self._top,
        )
        shown = render_frame(frame, self.console)
        self._page, self._rest = shown.rows, shown.rest
        self.screen.update(shown.content)


def _cut(text: str) -> str:
    rest = len(text) - MOST_TEXT
    return text if rest <= 0 else f"{text[:MOST_TEXT]}\n\n({rest:,} more characters are not shown)"
