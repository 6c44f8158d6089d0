"""What most experiments are run on."""

from pathlib import Path

import pytest

from tests import tiny


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tiny.make(tmp_path)
