"""The examples in the docstrings of what is public."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

MODULES = (
    "api.compare",
    "api.fuse",
    "data.qrels",
    "data.run",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    result = doctest.testmod(import_module(f"fusion_bench.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
