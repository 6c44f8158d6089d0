"""What every format's reader returns: columns, and the line that each row stood on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.rows.ids import CategoricalIds

Kind: TypeAlias = Literal["run", "qrels"]


@dataclass(frozen=True)
class ArrowStrings:
    """Ids that are not encoded yet, because those of several files are encoded together.

    Attributes:
        chunks: One Arrow array of type ``large_string``; none once it has been taken out.
    """

    chunks: list[Any]

    def __len__(self) -> int:
        return len(self.chunks[0])


@dataclass(frozen=True)
class RawTable:
    """One file's rows. Numbers may be text still: whoever makes records of them parses it.

    Attributes:
        queries: Query ids.
        documents: Document ids.
        values: Scores or grades, as text or numbers; None for a run of which only ranks are known.
        ranks: The rank column, if it was asked for or stands in for the scores.
        lines: 1-based line (or record) of each row; or a text that follows the path in a message,
            such as ``": query 'q1'"``.
        bare: Query whose list may be no ranking, but any object of numbers → where it stands.
    """

    queries: Sequence[str] | CategoricalIds
    documents: Sequence[str] | CategoricalIds | ArrowStrings
    values: Sequence[str | float] | NDArray[np.number] | None
    ranks: Sequence[str | int] | NDArray[np.number] | None
    lines: Sequence[int | str]
    bare: Mapping[str, str] = field(default_factory=dict)
