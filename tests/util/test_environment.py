"""A variable of the environment has a value while something is loaded, and nothing else changes."""

import os

import pytest

from fusion_bench.util.environment import NO_PLUGINS, SHORT_WAITS


def test_the_variable_stands_while_a_library_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SHORT_WAITS.name, raising=False)
    with SHORT_WAITS:
        assert os.environ[SHORT_WAITS.name] == SHORT_WAITS.value
    assert SHORT_WAITS.name not in os.environ


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHORT_WAITS.name, "26")
    with SHORT_WAITS:
        assert os.environ[SHORT_WAITS.name] == "26"
    assert os.environ[SHORT_WAITS.name] == "26"


def test_the_last_one_inside_restores_what_the_first_one_met(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(NO_PLUGINS.name, "some")
    with NO_PLUGINS:
        with NO_PLUGINS:
            assert os.environ[NO_PLUGINS.name] == NO_PLUGINS.value
        assert os.environ[NO_PLUGINS.name] == NO_PLUGINS.value
    assert os.environ[NO_PLUGINS.name] == "some"
