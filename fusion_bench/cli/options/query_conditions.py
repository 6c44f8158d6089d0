"""Options that select queries."""

from __future__ import annotations

from collections.abc import Iterable

import typer


def read_conditions(given: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Field → values of the options ``--where FIELD=VALUE``.

    Raises:
        BadParameter: One of them is of another form.
    """
    conditions: dict[str, tuple[str, ...]] = {}
    for text in given:
        field, equals, value = text.partition("=")
        if not (field and equals and value):
            raise typer.BadParameter(
                f"{text!r}: FIELD=VALUE is needed, such as language=ja", param_hint="--where"
            )
        conditions[field] = (*conditions.get(field, ()), value)
    return conditions
