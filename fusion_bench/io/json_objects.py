"""Objects of JSON Lines files, and the texts in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fusion_bench.errors import DataError
from fusion_bench.io.file_bytes import read_text
from fusion_bench.util.formatting import is_encodable

__all__ = ["read_objects", "require_text"]


def require_text(value: object, what: str, where: str) -> str:
    """An id or a name: text, or a whole number, which stands for its digits.

    Raises:
        DataError: It is anything else.
    """
    if isinstance(value, str | int) and not isinstance(value, bool) and is_encodable(str(value)):
        return str(value)
    raise DataError(f"{where}: {what} must be text, given {json.dumps(value)}")


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each object of a JSON Lines file with its line number; blank lines are skipped.

    Raises:
        DataError: A line that is not a JSON object.
    """
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:  # ValueError: also a number of 5,000 digits
            problem = getattr(error, "msg", error)
            raise DataError(f"{path}:{number}: not JSON: {problem}") from None
        if not isinstance(item, dict):
            raise DataError(f"{path}:{number}: a JSON object is needed, found {line.strip()[:40]}")
        yield number, item
