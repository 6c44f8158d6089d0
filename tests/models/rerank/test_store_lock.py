"""A second run waits for the first that asks the same model for the same store."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from fusion_bench.models import answer_stores
from fusion_bench.models.answer_stores import lock_models
from fusion_bench.models.reranker_protocol import Identity

FIRST = Identity("jina", "a", "unit")
SECOND = Identity("jina", "b", "unit")


def test_who_asks_the_same_model_waits(tmp_path: Path) -> None:
    store = tmp_path / "new" / "s.sqlite"
    order = []
    is_waiting = threading.Event()

    class Note(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            assert "asks jina/" in record.getMessage()
            is_waiting.set()

    def run_second() -> None:
        with lock_models(store, [SECOND, FIRST]):
            order.append("second")

    handler = Note()
    answer_stores.log.addHandler(handler)
    other = threading.Thread(target=run_second)
    try:
        with lock_models(store, [FIRST, SECOND]):
            other.start()
            assert is_waiting.wait(60)
            order.append("first")
    finally:
        other.join(60)
        answer_stores.log.removeHandler(handler)
    assert order == ["first", "second"]
    assert list(store.parent.iterdir()) == []


def test_who_asks_another_model_does_not_wait(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    with lock_models(store, [FIRST]), lock_models(store, [SECOND]):
        assert len(list(tmp_path.iterdir())) == 2
    with lock_models(store, [FIRST]), lock_models(tmp_path / "t.sqlite", [FIRST]):
        assert len(list(tmp_path.iterdir())) == 2


def test_where_there_are_no_locks_nobody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *, wait: bool) -> int:
        raise OSError(f"{path}: no locks {wait}")

    monkeypatch.setattr(answer_stores, "take_lock", refuse)
    with lock_models(tmp_path / "s.sqlite", [FIRST]), lock_models(tmp_path / "s.sqlite", [FIRST]):
        pass


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the system has no /proc")
def test_a_folder_that_takes_no_file_has_no_lock() -> None:
    with lock_models(Path("/proc/no-store.sqlite"), [FIRST]):
        pass
