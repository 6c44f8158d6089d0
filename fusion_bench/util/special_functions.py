"""The compiled functions of ``scipy.special``.

The package itself imports numpy's f2py and testing and documents a hundred wrappers, which takes
ten times as long as loading the functions that it wraps.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final

from fusion_bench.util.environment import SHORT_WAITS

PACKAGE: Final = "scipy.special"


def _load_functions() -> ModuleType:
    """The extension module alone; the package where it is loaded, or is built in another way."""
    spec = find_spec(PACKAGE)
    if spec is not None and PACKAGE not in sys.modules:
        sys.modules[PACKAGE] = module_from_spec(spec)  # not run: a package that has only its folder
        try:
            with suppress(ImportError), SHORT_WAITS:
                return import_module(f"{PACKAGE}._ufuncs")
        finally:
            del sys.modules[PACKAGE]
    return import_module(PACKAGE)


#: Numpy's universal functions by name, such as ``special.stdtr``.
special: Final[Any] = _load_functions()
