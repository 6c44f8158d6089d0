"""The package ir_measures and its measure objects; imported only when such a measure is used."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def import_ir_measures() -> Iterator[Any]:
    """The package, without the warnings that it is known to raise of itself, and no others."""
    with warnings.catch_warnings():
        # It reads names with classes of `ast` that Python 3.12 and 3.13 call deprecated.
        warnings.filterwarnings("ignore", r"ast\.(Num|Str|NameConstant)", DeprecationWarning)
        warnings.filterwarnings("ignore", r"Attribute [ns] is deprecated", DeprecationWarning)
        import ir_measures

        yield ir_measures


def parse_with_ir_measures(name: str) -> Any:  # noqa: ANN401 - ir_measures ships no usable types
    """The measure object of ir_measures."""
    with import_ir_measures() as ir_measures:
        return ir_measures.parse_measure(name)


def without_judged_only(measure: Any) -> Any:  # noqa: ANN401 - see above
    """The same measure object without the option ``judged_only``."""
    rest = {key: value for key, value in measure.params.items() if key != "judged_only"}
    return type(measure)(**rest)
