"""A project with judges, in the folder where a test runs."""

from pathlib import Path

import pytest

from tests.judging.grades.judged_project import make_judged_project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(make_judged_project(tmp_path))
    return tmp_path
