"""An empty database for the tests of shared and exported searches."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import optuna
import pytest
from sqlalchemy import Engine, event


@pytest.fixture(scope="package", autouse=True)
def fast_commits() -> Iterator[None]:
    """SQLite does not wait for the disk: no test pulls the plug."""

    def configure(connection: object, _: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF")

    event.listen(Engine, "connect", configure)
    yield
    event.remove(Engine, "connect", configure)


@pytest.fixture(scope="package")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with Optuna's tables, which take seconds to make."""
    path = tmp_path_factory.mktemp("sqlite") / "empty.db"
    storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
    storage.remove_session()
    storage.engine.dispose()
    return path


@pytest.fixture
def sqlite(tables: Path, tmp_path: Path) -> str:
    copy = shutil.copy(tables, tmp_path / "study.db")
    return f"sqlite:///{copy}"
