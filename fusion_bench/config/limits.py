"""The greatest numbers that settings may hold.

Beyond these a number is a slip of the finger: it would cost memory or days, and give no other
result. ``docs/scale.md`` has the table.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from pydantic import Field

#: Ranks: cutoffs of measures, depths, ``top_k``. No list is longer.
MOST_RANK: Final = 1_000_000
#: Random flips or draws of a test.
MOST_RESAMPLES: Final = 1_000_000
#: Parameter sets of a search.
MOST_TRIALS: Final = 1_000_000
#: Folds of a cross-validation.
MOST_FOLDS: Final = 1_000
#: Threads, processes, and requests at once.
MOST_WORKERS: Final = 1_024
#: Texts or documents in one request.
MOST_BATCH: Final = 100_000

#: A rank from 1 that something is cut at.
Rank: TypeAlias = Annotated[int, Field(ge=1, le=MOST_RANK)]
