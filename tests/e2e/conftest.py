"""Where most commands are tried: in the folder of the tiny project."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import tiny


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny project, as the working directory."""
    monkeypatch.delenv("RAG_FUSION_V2_ENABLED", raising=False)
    monkeypatch.chdir(tiny.make(tmp_path))
    return tmp_path
