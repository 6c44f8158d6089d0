"""The console on a made project, opened once: it holds no setting."""

from pathlib import Path

import pytest

from fusion_bench.serving.console.session import ConsoleSession
from tests.serving.console.project import make_project, open_project


@pytest.fixture(scope="session")
def console_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("console")
    make_project(folder)
    return folder


@pytest.fixture(scope="session")
def session(console_folder: Path) -> ConsoleSession:
    return open_project(console_folder)
