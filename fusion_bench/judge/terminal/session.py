"""What the keys of a judge do: no screen, no keyboard."""

from __future__ import annotations

from dataclasses import dataclass, field

from fusion_bench.judge.files.judgment import Judgment, format_time
from fusion_bench.judge.judge_task import JudgeTask
from fusion_bench.judge.pool.pool import Pair, PooledDocument

MOST_NOTE = 1000


@dataclass(eq=False)
class Session:
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
