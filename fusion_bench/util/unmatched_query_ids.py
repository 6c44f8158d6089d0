"""Query ids without judgments, and the judged ids that they resemble."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection

#: A query id, and the judged id that it resembles; None = none.
UnmatchedId = tuple[str, str | None]

#: Most ids that a message names.
MOST_NAMED = 3
#: With more ids on a side, only equal letters and numbers are matched.
MAX_COMPARED = 2_000
#: Smallest similarity ratio of two spellings of one id.
MIN_SIMILARITY = 0.8


def find_unmatched_ids(
    returned: Collection[str], judged: Collection[str]
) -> tuple[UnmatchedId, ...]:
    """The first ids that are not judged, those that resemble a judged one first.

    Args:
        returned: Query ids of a list.
        judged: Query ids of the judgments.
    """
    unknown = sorted(set(returned).difference(judged))
    free = sorted(set(judged).difference(returned))
    same = {_normalize_id(name): name for name in reversed(free)}
    looked = unknown if same else []
    near = {name: same[plain] for name in looked if (plain := _normalize_id(name)) in same}
    if len(unknown) <= MAX_COMPARED >= len(free):
        for name in unknown[: MOST_NAMED * MOST_NAMED]:
            close = difflib.get_close_matches(name, free, n=1, cutoff=MIN_SIMILARITY)
            near |= dict.fromkeys([name], close[0]) if close and name not in near else {}
    order = sorted(unknown, key=lambda name: name not in near)
    return tuple((name, near.get(name)) for name in order[:MOST_NAMED])


def format_unmatched_ids(unmatched: Collection[UnmatchedId], total: int) -> str:
    """``'Q5' (did you mean 'q05'?), 'x' and 7 more``."""
    words = [
        repr(name) if meant is None else f"{name!r} (did you mean {meant!r}?)"
        for name, meant in unmatched
    ]
    more = f" and {total - len(unmatched):,} more" if total > len(unmatched) else ""
    return ", ".join(words) + more


def _normalize_id(name: str) -> str:
    """The id without case, leading zeros and other characters than letters and digits."""
    parts = re.findall(r"[^\W\d_]+|\d+", name.casefold())
    return " ".join(part.lstrip("0") or "0" if part.isdecimal() else part for part in parts)
