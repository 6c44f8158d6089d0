"""Optional dependencies, imported on first use."""

from __future__ import annotations

import importlib
from typing import Any

from fusion_bench.errors import MissingExtraError


def import_optional(module: str, *, extra: str, purpose: str) -> Any:  # noqa: ANN401 - a module
    """Import an optional library.

    Args:
        module: Name of the module.
        extra: The extra of this distribution that installs it.
        purpose: What needs it, as the subject of a sentence.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(module, extra=extra, purpose=purpose) from None
