"""What the records of a result file have in common."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict


def none_if_nan(value: float | None) -> float | None:
    """The number; None for NaN, which JSON has not."""
    return None if value is None or math.isnan(value) else value


#: A number that may be missing: null in JSON, None here.
OptionalFloat = Annotated[float | None, AfterValidator(none_if_nan)]


class ReportRecord(BaseModel):
    """Frozen; a key it does not know means another format, hence an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")
