"""The prepared project: made once, copied for each test."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.fork_server import ForkServer
from tests.attacks.project import make_project


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("prepared"))


@pytest.fixture
def project(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("RAG_FUSION_V2_ENABLED", raising=False)
    return Path(shutil.copytree(prepared, tmp_path / "project"))


@pytest.fixture(scope="session")
def server() -> Iterator[ForkServer]:
    """Starts processes of their own at once."""
    started = ForkServer()
    yield started
    started.close()
