"""Reading stored JSON records, which state their format and its version."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fusion_bench.errors import DataError

Model = TypeVar("Model", bound=BaseModel)


def read_stored(
    path: Path,
    model: type[Model],
    *,
    what: str,
    remedy: str,
    check: Callable[[dict[str, Any]], None] | None = None,
) -> Model:
    """Read a JSON file that holds one record.

    Args:
        path: The file.
        model: Its fields ``format`` and ``format_version`` have by default what is read.
        what: What the file is, such as ``report``.
        remedy: What to do about a file that cannot be used.
        check: Looks at the data before the model does; raises DataError.

    Raises:
        FileNotFoundError: There is no such file.
        DataError: Not JSON, not such a record, a format that this version does not know, or a
            field that breaks a rule.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not a JSON {what}: {error}: {remedy}") from None
    known = {key: model.model_fields[key].default for key in ("format", "format_version")}
    if not isinstance(data, dict) or data.get("format") != known["format"]:
        raise DataError(f"{path}: not a {what} of fusion-bench (no 'format': '{known['format']}')")
    if data.get("format_version") != known["format_version"]:
        raise DataError(
            f"{path}: {what} format {data.get('format_version')!r}, and this version reads format "
            f"{known['format_version']}: {remedy}"
        )
    if check is not None:
        check(data)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{path}: {place}: {first['msg']}: {remedy}") from None
