"""What every stored column of values has to satisfy, in a report and in a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fusion_bench.util.formatting import pluralize

#: Sums of floats in another order differ by less.
ROUNDING: Final = 1e-9


def check_column(
    place: str, column: Sequence[float | None], count: int, *, is_bounded: bool
) -> Iterator[str]:
    """What is wrong with a column: not a value a query, or one outside [0, 1].

    Args:
        place: Where it stands.
        column: The values; None = missing.
        count: The queries.
        is_bounded: Whether all values lie in [0, 1].
    """
    if len(column) != count:
        values = pluralize(len(column), "value")
        yield f"{place}: {values} for {pluralize(count, 'query')}"
    if is_bounded:
        yield from check_range(place, column)


def check_range(place: str, values: Iterable[float | None]) -> Iterator[str]:
    """The first of these values that lies outside [0, 1] by more than a rounding error."""
    for value in values:
        if value is not None and not -ROUNDING <= value <= 1 + ROUNDING:
            yield f"{place}: values from 0 to 1 are needed, given {value:g}"
            return
