"""Data outside this repository that parity tests compare with."""

import os
from pathlib import Path

import pytest

VARIABLE = "FUSION_BENCH_PARITY_DATA"


def parity_data(name: str) -> Path:
    """The folder ``name`` of the parity data.

    Skips the test where the variable is not set; fails it where the variable is set and the
    folder is not there, so that a wrong path never looks like a pass.
    """
    root = os.environ.get(VARIABLE)
    if not root:
        pytest.skip(f"{VARIABLE} is not set")
    folder = Path(root) / name
    if not folder.is_dir():
        pytest.fail(f"{VARIABLE} is set, but there is no folder {folder}")
    return folder
