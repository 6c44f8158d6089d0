"""A project, and a server of its tools over each transport, started once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.project import EXPERIMENT, make_project
from tests.serving.mcp.served import Served, connect_http, connect_stdio

CONNECT = {"stdio": connect_stdio, "http": connect_http}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("mcp"))


@pytest.fixture(scope="session", params=CONNECT)
def served(folder: Path, request: pytest.FixtureRequest) -> Iterator[Served]:
    words = ("--experiment", EXPERIMENT, "--out", "exported")
    with CONNECT[request.param](folder, *words) as client:
        yield client
