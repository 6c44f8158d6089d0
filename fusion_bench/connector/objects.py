"""Objects of the user's own code, by name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fusion_bench.errors import ConfigError


def load_object(name: str, key: str) -> Any:  # noqa: ANN401 - whatever the user names
    """The object that ``module:attribute`` names; ``module:a.b`` is the attribute of an attribute.

    The working directory is searched for the module, too.

    Args:
        name: What was given.
        key: The setting that holds it, for messages.

    Raises:
        ConfigError: There is no such module or attribute, or importing it failed.
    """
    module, colon, path = name.partition(":")
    if not colon or not path or not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(f"{key}: {name!r} is not of the form module:attribute")
    try:
        with _search_working_directory():
            target: Any = importlib.import_module(module)
            for part in path.split("."):
                target = getattr(target, part)
    except Exception as error:  # noqa: BLE001 - user code may raise anything
        raise ConfigError(
            f"{key}: {name!r} cannot be loaded: {type(error).__name__}: {error}"
        ) from None
    return target


@contextmanager
def _search_working_directory() -> Iterator[None]:
    folder = str(Path.cwd())
    if folder in sys.path:
        yield
        return
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
