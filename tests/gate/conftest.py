"""What most gates are tried on."""

from pathlib import Path

import pytest

from tests.gate import cases


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return cases.make_project(tmp_path)
