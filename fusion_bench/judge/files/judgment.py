"""One judgment, and the scale of its grade."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import ConfigError

#: Columns of a judge's file.
COLUMNS: Final = ("query", "document", "grade", "judge", "note", "time")
#: The greatest grade that a file can hold, and the greatest that one key can give.
MOST_GRADE: Final = 999
MOST_KEY: Final = 9
JUDGE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Judgment:
    """A grade that a judge gave.

    Attributes:
        query: Id of the query.
        document: Id of the document.
        grade: 0 = not relevant.
        judge: The judge's name.
        note: What the judge remarked; empty = nothing.
        time: When, in UTC, as ISO 8601 writes it.
    """

    query: str
    document: str
    grade: int
    judge: str
    note: str = ""
    time: str = ""

    @property
    def pair(self) -> tuple[str, str]:
        """Query and document."""
        return self.query, self.document

    @property
    def cells(self) -> tuple[str, ...]:
        """As a row of :data:`COLUMNS`."""
        return (self.query, self.document, str(self.grade), self.judge, self.note, self.time)


def format_time() -> str:
    """Now, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def check_judge(name: str) -> str:
    """A name that a judge's file can have.

    Raises:
        ConfigError: It cannot.
    """
    if JUDGE_NAME.fullmatch(name) is None:
        raise ConfigError(
            f"--judge: {name[:80]!r} names no file: use letters, digits, '.', '_' and '-', at most "
            "64, the first one a letter or digit"
        )
    return name


def top_grade(
    qrels: Qrels, binary_relevance: int, asked: int | None, given: Iterable[int] = ()
) -> int:
    """The greatest grade of the scale, which begins at 0.

    Args:
        qrels: The judgments so far.
        binary_relevance: The grade from which a document is relevant.
        asked: ``--max-grade``; None = the greatest that is known.
        given: Grades in the files of judges.

    Raises:
        ConfigError: The scale does not hold what is known.
    """
    known = max(binary_relevance, int(qrels.grades.max(initial=0)), *given)
    if asked is not None and asked < known:
        raise ConfigError(
            f"--max-grade: {asked}, and grade {known} is in use: the scale must hold it"
        )
    greatest = known if asked is None else asked
    if greatest > MOST_GRADE:
        raise ConfigError(f"grades up to {greatest}: a judge's file has grades up to {MOST_GRADE}")
    return greatest


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
