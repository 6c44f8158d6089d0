"""Flags in environment variables."""

from __future__ import annotations

import os

from fusion_bench.errors import ConfigError

V2_VARIABLE = "RAG_FUSION_V2_ENABLED"
TRUE, FALSE = ("", "1", "true", "yes", "on"), ("0", "false", "no", "off")


def v2_enabled() -> bool:
    """Value of ``RAG_FUSION_V2_ENABLED``; true if it is not set.

    Raises:
        ConfigError: It is neither true nor false.
    """
    value = os.environ.get(V2_VARIABLE, "true").strip().lower()
    if value not in (*TRUE, *FALSE):
        raise ConfigError(
            f"{V2_VARIABLE}: {value!r} is neither true ({', '.join(filter(None, TRUE))}) nor false "
            f"({', '.join(FALSE)})"
        )
    return value in TRUE
