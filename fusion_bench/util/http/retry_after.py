"""How long a server asks to wait."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that a server asks to wait: ``retry-after-ms``, or ``Retry-After`` (RFC 9110).

    Args:
        headers: A case-insensitive mapping.
        now: The current time.

    Returns:
        At least 0; None without a valid header.
    """
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            seconds = float(milliseconds) / 1000
        elif (given := str(headers.get("retry-after"))).strip().isdigit():
            seconds = float(given)
        else:
            seconds = (parsedate_to_datetime(given) - now).total_seconds()
    except (TypeError, ValueError, OverflowError):  # years and zones of twenty digits overflow
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
