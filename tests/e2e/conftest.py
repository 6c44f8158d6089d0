"""Where most commands are tried: in the folder of the tiny project, or of that of the gate."""

from pathlib import Path

import pytest

from tests import tiny
from tests.gate import cases


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("RAG_FUSION_V2_ENABLED", raising=False)
    monkeypatch.chdir(tiny.make(tmp_path))
    return tmp_path


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("RAG_FUSION_V2_ENABLED", raising=False)
    monkeypatch.chdir(cases.make_project(tmp_path))
    return tmp_path
