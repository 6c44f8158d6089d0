"""Lines of a ledger that name the lines before them, so that none can be taken out unseen.

Each line holds its number and the digests of the lines that it follows: as a rule one, the last
line. Lines of two branches can be merged: both follow the same line, and the next one follows both.
The first line follows all that an earlier version wrote without numbers.

A cut at the end is seen by whoever wrote down the number and the digest of a later line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fusion_bench.util.digests import LINE_DIGITS, hash_values


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
        """Of all that it holds, but for what is filled in later."""


def digest_line(text: str) -> str:
    """The digest that other lines name."""
    return hash_values(text)[:LINE_DIGITS]


def follow_lines(lines: Sequence[ChainedLine]) -> dict[str, Any]:
    """The fields ``line`` and ``previous`` of the line that comes next."""
    followed = {digest for line in lines for digest in line.previous}
    last = [line.digest for line in lines if line.line and line.digest not in followed]
    return {"line": len(lines) + 1, "previous": tuple(last or [_digest_unnumbered(lines)])}


def find_gap(lines: Sequence[ChainedLine]) -> int | None:
    """Position, from 0, of the first line that follows one which is not there; None = none does."""
    known = {_digest_unnumbered(lines)}
    for index, line in enumerate(lines):
        if line.line is not None:
            if line.line > index + 1 or not line.previous or not known.issuperset(line.previous):
                return index
            known.add(line.digest)
    return None


def _digest_unnumbered(lines: Sequence[ChainedLine]) -> str:
    return digest_line("\n".join(line.digest for line in lines if line.line is None))
