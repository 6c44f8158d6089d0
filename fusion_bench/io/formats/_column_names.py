"""Column names that tables use for the same thing."""

from __future__ import annotations

from collections.abc import Sequence

from fusion_bench.data.column_names import COLUMN_NAMES
from fusion_bench.errors import DataError
from fusion_bench.io.raw_table import Kind


def find_columns(names: Sequence[str], kind: Kind, where: str) -> dict[str, str]:
    """The file's own name of each column that a kind needs, and of ``rank`` if it is there.

    Raises:
        DataError: A needed column is not there, or two have one name.
    """
    if len(set(names)) < len(names):
        repeated = next(name for name in names if list(names).count(name) > 1)
        raise DataError(f"{where}: two columns are named {repeated!r}: keep one")
    value = "score" if kind == "run" else "grade"
    by_lower = {name.strip().lower(): name for name in names}
    columns = {}
    for role in ("query", "document", value, "rank"):
        match = next((by_lower[name] for name in COLUMN_NAMES[role] if name in by_lower), None)
        if match is not None:
            columns["value" if role == value else role] = match
        elif role != "rank":
            raise DataError(
                f"{where}: no column for the {role} (found: {', '.join(names)}; allowed names: "
                f"{', '.join(COLUMN_NAMES[role])})"
            )
    return columns
