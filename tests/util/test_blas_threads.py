"""Threads of OpenBLAS sleep early where this package loads it, and nothing else changes."""

import os

import pytest

from fusion_bench.util.blas_threads import CYCLES, VARIABLE, short_waits


def test_the_variable_stands_while_a_library_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with short_waits():
        assert os.environ[VARIABLE] == CYCLES
    assert VARIABLE not in os.environ


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "26")
    with short_waits():
        assert os.environ[VARIABLE] == "26"
    assert os.environ[VARIABLE] == "26"
