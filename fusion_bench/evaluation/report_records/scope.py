"""Which of a dataset's queries were evaluated, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence


def format_scope(
    split: str | None,
    query_type: str | None,
    where: Mapping[str, Sequence[str]],
    format_name: Callable[[str], str] = str,
) -> str:
    """``, split test, type local, language ja``; empty for all judged queries.

    Args:
        split: None = all.
        query_type: None = all.
        where: Field of the queries → the values that they have.
        format_name: How a name is written.
    """
    filters: dict[str, Sequence[str]] = {} if split is None else {"split": (split,)}
    filters |= {} if query_type is None else {"type": (query_type,)}
    parts = (
        f", {format_name(field)} {' or '.join(map(format_name, values))}"
        for field, values in {**filters, **where}.items()
    )
    return "".join(parts)
