"""Ledgers: files of JSON lines that each have a digest and name the lines before them.

Looks, campaigns and the candidates of a gate are lines of this one format. Each line holds its
number and the digests of the lines that it follows, as a rule one, the last line. Lines of two
branches can be merged: both follow the same line, and the next one follows both. The first line
follows all that an earlier version wrote without numbers.

Whoever wrote down the number and the digest of a later line notices a cut at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from pydantic import ValidationError

from fusion_bench.errors import DataError
from fusion_bench.util.digests import LINE_DIGITS, hash_values, strip_line_digest
from fusion_bench.util.files import explain_error, read_committed_copies, read_regular_text


class ChainedLine(Protocol):
    """A line of a ledger."""

    @property
    def line(self) -> int | None:
        """Its number when it was written, from 1; None = an earlier version wrote it."""

    @property
    def previous(self) -> tuple[str, ...]:
        """Digests of the lines that it follows."""

    @property
    def digest(self) -> str:
        """The digest of the line, but for what is filled in later."""


def digest_line(text: str) -> str:
    """The digest that other lines name."""
    return hash_values(text)[:LINE_DIGITS]


def follow_lines(lines: Sequence[ChainedLine]) -> dict[str, Any]:
    """The fields ``line`` and ``previous`` of the line that comes next."""
    followed = {digest for line in lines for digest in line.previous}
    last = [line.digest for line in lines if line.line and line.digest not in followed]
    return {"line": len(lines) + 1, "previous": tuple(last or [_digest_unnumbered(lines)])}


def _find_gap(lines: Sequence[ChainedLine]) -> int | None:
    """Position, from 0, of the first line that follows one which is not there; None = none does."""
    known = {_digest_unnumbered(lines)}
    for index, line in enumerate(lines):
        if line.line is not None:
            if line.line > index + 1 or not line.previous or not known.issuperset(line.previous):
                return index
            known.add(line.digest)
    return None


def follow_line(last: ChainedLine | None) -> dict[str, Any]:
    """The fields ``line`` and ``previous`` of what follows one line; None = the first line."""
    if last is None:
        return {"line": 1, "previous": (_digest_unnumbered([]),)}
    return {"line": (last.line or 0) + 1, "previous": (last.digest,)}


def _digest_unnumbered(lines: Sequence[ChainedLine]) -> str:
    return digest_line("\n".join(line.digest for line in lines if line.line is None))


Line = TypeVar("Line", bound=ChainedLine)


def _find_branch(lines: Sequence[ChainedLine], start: int = 0) -> int | None:
    """Position of the first line that does not follow the one before it; None = all do.

    Args:
        lines: Of a ledger of which no two branches may be merged.
        start: The lines before this position were checked already.
    """
    for index in range(start, len(lines)):
        place = {"line": lines[index].line, "previous": lines[index].previous}
        if place != follow_line(lines[index - 1] if index else None):
            return index
    return None


@dataclass(frozen=True)
class LedgerFormat(Generic[Line]):
    """One kind of ledger.

    Attributes:
        parse: The text of a line without its digest → the line; raises ValueError.
        name: What a line is a line of, for messages: ``ledger of looks``.
        consequence: What happens without the file, for messages.
        undigested: How the lines of a version without digests begin; None = there is none.
        is_linear: Whether each line follows exactly the one before it; else lines of two branches
            may follow the same line.
    """

    parse: Callable[[str], Line]
    name: str
    consequence: str
    undigested: str | None = None
    is_linear: bool = False

    def read_text(self, path: Path) -> str:
        """The text of a ledger; empty where there is no such file.

        Raises:
            DataError: The file cannot be read.
        """
        try:
            return read_regular_text(path)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {explain_error(error)}") from error

    def read(self, path: Path) -> list[Line]:
        """The lines of a ledger; raises as :meth:`read_text` and :meth:`parse_text`."""
        return self.parse_text(self.read_text(path), path)

    def parse_text(self, text: str, where: Path | str, known: Sequence[Line] = ()) -> list[Line]:
        """The lines of a text.

        Args:
            text: Of the whole file.
            where: The file, for messages.
            known: Its first lines, without blank ones, where these were parsed before.

        Raises:
            DataError: A line is none, or follows one that is not there; names file and line.
        """
        numbered = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
        lines = list(known)
        for number, whole in numbered[len(known) :]:
            at, line = f"{where}:{number}", whole.rstrip("\r")
            stripped = strip_line_digest(line)
            is_old = self.undigested is not None and line.startswith(self.undigested)
            if stripped is None and (not is_old or '"sha256":' in line):
                self.refuse(at, "its digest does not match: it was edited or damaged")
            try:
                lines.append(self.parse(stripped or line))
            except ValidationError as error:
                first = error.errors()[0]
                place = ".".join(map(str, first["loc"]))
                self.refuse(at, f"{place}: {first['msg']}" if place else first["msg"])
            except ValueError as error:
                self.refuse(at, str(error))
        gap = _find_branch(lines, len(known)) if self.is_linear else _find_gap(lines)
        if gap is not None:
            self.refuse(f"{where}:{numbered[gap][0]}", "a line before it was removed or edited")
        return lines

    def check_committed(
        self,
        path: Path,
        lines: Sequence[Line],
        parse: Callable[[str, str], Sequence[Line]] | None = None,
    ) -> None:
        """Refuse a ledger that lacks a line that git has of it at ``HEAD``.

        Nothing is checked if git is not installed, or has no commit of the folder.

        Args:
            path: The ledger.
            lines: Those in it.
            parse: Parses a text, given what to call its file; None = :meth:`parse_text`.

        Raises:
            DataError: A line is missing or another one, or the file is gone; names the line.
            ConfigError: git cannot say which repository is the ledger's.
        """
        for data in (read_committed_copies(path, "HEAD") or {}).values():
            text, where = data.decode(errors="replace"), f"{path} at HEAD"
            committed = enumerate((parse or self.parse_text)(text, where), 1)
            changed = [(n, line) for n, line in committed if lines[n - 1 : n] != [line]]
            kept = {line.digest for line in lines} if changed else set()
            for number, line in changed:
                if line.digest not in kept:
                    raise DataError(
                        f"{path}: line {number} is not as it was committed: restore the file, for "
                        f"example by 'git checkout HEAD -- {path.name}'; {self.consequence}"
                    )

    def refuse(self, where: str, reason: str) -> NoReturn:
        """Refuse a line.

        Raises:
            DataError: Always.
        """
        raise DataError(
            f"{where}: not a line of a {self.name} ({reason}): restore the file, for example "
            f"from version control; {self.consequence}"
        )
