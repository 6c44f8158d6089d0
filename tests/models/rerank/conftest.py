"""The tiny dataset with texts, in the folder where a test runs."""

from pathlib import Path

import pytest

from tests.models.rerank.collection import make


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(make(tmp_path))
    monkeypatch.setenv("JINA_API_KEY", "sk-jina-0123456789")
    return tmp_path
