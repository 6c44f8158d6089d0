"""RankLib's training data, which LETOR, XGBoost and the plug-in for learning to rank share.

A line is ``2 qid:q1 1:0.3 2:1.5 # d1``: a grade, a query, features, and the document's id, the
first word of the comment. LETOR writes ``#docid = d1``.

Source: https://sourceforge.net/p/lemur/wiki/RankLib%20File%20Format/
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from fusion_bench.errors import DataError
from fusion_bench.io.formats._base import register_format
from fusion_bench.io.raw_files import ColumnNames, Kind, RawTable, read_text

#: Grade, query, and what the comment begins with.
LINE: Final = re.compile(
    r"\s*([-+.\deE]+)\s+qid:(\S+)(?:\s+\d+:\S+)*\s*(?:#\s*(?:docid\s*=\s*)?(\S+).*)?"
)


def looks_like_ranklib(lines: list[str]) -> bool:
    """Whether the first line that is no comment has a grade and a ``qid``."""
    rows = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return bool(rows) and LINE.fullmatch(rows[0]) is not None


@register_format("ranklib", ".ranklib", ".letor")
def read_table(path: Path, kind: Kind, *, has_ranks: bool, columns: ColumnNames) -> RawTable:  # noqa: ARG001 - the protocol
    """Read judgments; features are left out.

    Raises:
        DataError: A ranked list is needed, or a line has no grade, query or document.
    """
    if kind == "run":
        raise DataError(f"{path}: judgments in RankLib's format, and a ranked list is needed")
    rows = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if match is None or match[3] is None:
            raise DataError(
                f"{path}:{number}: a line is '2 qid:q1 1:0.3 # d1', with the document's id behind "
                f"'#', given {line.strip()[:60]!r}"
            )
        rows.append((match[2], match[3], match[1], number))
    queries, documents, grades, lines = map(list, zip(*rows, strict=True) if rows else [()] * 4)
    return RawTable(queries, documents, grades, None, lines)
