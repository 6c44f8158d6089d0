"""Reading stored JSON records, which state their format and its version."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from fusion_bench.config.models import Model, parse_model
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.util.files.regular_files import read_regular_text
from fusion_bench.util.os_errors import explain_error
from fusion_bench.util.repeated_keys import refuse_repeated_keys


class StoredRecord(BaseModel):
    """Frozen; refuses unknown keys and NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def read_stored(path: Path, model: type[Model], *, what: str, remedy: str) -> Model:
    """Read a JSON file that holds one record.

    Args:
        path: The file.
        model: Its fields ``format`` and ``format_version`` have by default what is read.
        what: What the file is, such as ``report``.
        remedy: What to do about a file that cannot be used.

    Raises:
        DataError: No such file, not JSON, not such a record, a format that this version does not
            know, or a field that breaks a rule.
    """
    try:
        data = json.loads(read_regular_text(path), object_pairs_hook=refuse_repeated_keys)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, DataError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not a JSON {what}: {explain_error(error)}: {remedy}") from None
    known = {key: model.model_fields[key].default for key in ("format", "format_version")}
    if not isinstance(data, dict) or data.get("format") != known["format"]:
        raise DataError(f"{path}: not a {what} of fusion-bench (no 'format': '{known['format']}')")
    if data.get("format_version") != known["format_version"]:
        raise DataError(
            f"{path}: {what} format {data.get('format_version')!r}, and this version reads format "
            f"{known['format_version']}: {remedy}"
        )
    try:
        return parse_model(model, data)
    except ConfigError as error:
        raise DataError(f"{path}: {error}: {remedy}") from None
