"""The score store: found again, never mixed up, never lost; a second run waits for the first."""

import logging
import sqlite3
import threading
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest

from fusion_bench.errors import DataError
from fusion_bench.models import answer_stores
from fusion_bench.models.answer_stores import ScoreStore, lock_models
from fusion_bench.models.reranker_protocol import Identity
from fusion_bench.util.digests import add_line_digest

WHO = Identity("p", "m", "unit", "http://a/v1", "2048 tokens", "prompt 1")


def test_scores_are_found_again_by_another_process(tmp_path: Path) -> None:
    path = tmp_path / "deep/scores.sqlite"
    one, two = ScoreStore(path), ScoreStore(path)
    one.save_scores(WHO, "q", {"a": 0.25, "b": 0.1 + 0.2}, ("run", {"kind": "call"}))
    assert two.read_scores(WHO, "q", ["b", "x", "a"]) == [0.1 + 0.2, None, 0.25]
    assert two.read_events("run") == [{"kind": "call"}]
    assert two.read_events("other") == []
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()
    one.close()
    two.close()


@pytest.mark.parametrize("field", [field.name for field in fields(Identity)])
def test_whatever_a_score_depends_on_is_in_its_key(field: str) -> None:
    store = ScoreStore()
    store.save_scores(WHO, "q", {"a": 0.5})
    assert store.read_scores(WHO, "q", ["a"]) == [0.5]
    assert store.read_scores(Identity(**{**asdict(WHO), field: "logit"}), "q", ["a"]) == [None]
    assert store.read_scores(WHO, "q2", ["a"]) == [None]
    assert store.read_scores(WHO, "q", ["a "]) == [None]


def test_many_documents_resolved_models_and_answers_with_their_price() -> None:
    store = ScoreStore()
    scores = {f"d{i}": i / 2000 for i in range(1201)}
    store.save_scores(WHO, "q", scores)
    assert store.read_scores(WHO, "q", list(scores)) == list(scores.values())
    assert store.resolved_model(WHO) == "m"
    store.save_model(WHO, "m-2024")
    assert store.resolved_model(WHO) == "m-2024"
    assert store.resolved_model(replace(WHO, endpoint="http://b")) == "m"
    with pytest.raises(TypeError):
        store.save_scores(WHO, "q", {"a": 0.5}, ("run", {"cost": object()}))
    assert store.read_scores(WHO, "q", ["a"]) == [None]
    store.record_event("run", {"kind": "query"})
    assert store.read_events("run") == [{"kind": "query"}]


def test_no_text_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    store = ScoreStore(path)
    store.save_scores(WHO, "a secret question", {"a private document": 0.5})
    store.close()
    data = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"secret" not in data
    assert b"private" not in data


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no database at all, but long enough to be looked at" * 20, encoding="utf-8")
    with pytest.raises(DataError, match="text: not a usable"):
        ScoreStore(text)
    later = tmp_path / "later"
    spoil(later, "PRAGMA user_version = 3")
    with pytest.raises(DataError, match=r"later: .* version 3"):
        ScoreStore(later)
    with pytest.raises(DataError, match="not a usable"):
        ScoreStore(text / "below")


def spoil(path: Path, statement: str, *values: str) -> None:
    with sqlite3.connect(path) as db:
        db.execute(statement, values)
    db.close()


@pytest.mark.parametrize("new", ["5", "-1", "NaN", "true", '"0.5"', "[" * 100_000, "1" + "0" * 400])
def test_an_edited_score_is_refused(tmp_path: Path, new: str) -> None:
    path = tmp_path / "s"
    store = ScoreStore(path)
    store.save_scores(WHO, "q", {"a": 0.5}, ("run", {"cost": 0.5}))
    spoil(path, "UPDATE scores SET value = replace(value, '0.5', ?)", new)
    for read in (store.read_scores, store.find_unread):
        with pytest.raises(DataError, match="s: a row of scores "):
            read(WHO, "q", ["a"])
    assert store.read_scores(WHO, "q", ["b"]) == [None]
    spoil(path, "UPDATE events SET value = replace(value, '0.5', '0.0')")
    with pytest.raises(DataError, match=r"events .* run"):
        store.read_events("run")


def test_the_value_of_another_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s"
    store = ScoreStore(path)
    store.save_scores(WHO, "q", {"a": 0.5})
    store.save_scores(WHO, "q", {"b": 0.25})
    spoil(path, "UPDATE scores SET value = (SELECT min(value) FROM scores)")
    with pytest.raises(DataError, match="row of scores"):
        store.read_scores(WHO, "q", ["a", "b"])


@pytest.mark.parametrize("score", ["NaN", "true", '"0.5"', "Infinity", "1" + "0" * 400])
def test_a_score_that_is_no_number_is_refused_whatever_its_digest(
    tmp_path: Path, score: str
) -> None:
    path = tmp_path / "s"
    store = ScoreStore(path)
    store.save_scores(WHO, "q", {"a": 0.5})
    with sqlite3.connect(path) as db:
        ((key,),) = db.execute("SELECT key FROM scores").fetchall()
        text = add_line_digest(f'{{"score": {score}}}', key)
        db.execute("UPDATE scores SET value = ?", (text,))
    db.close()
    with pytest.raises(DataError, match="row of scores"):
        store.read_scores(WHO, "q", ["a"])


def test_a_store_of_version_1_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "s"
    store = ScoreStore(path)
    store.save_scores(WHO, "q", {"a": 0.5}, ("run", {"cost": 1.5}))
    store.save_model(WHO, "m-2024")
    store.close()
    spoil(path, "UPDATE scores SET value = substr(value, 1, length(value) - 29) || '}'")
    spoil(path, "UPDATE models SET value = substr(value, 1, length(value) - 29) || '}'")
    spoil(path, """UPDATE events SET value = '{"cost": 1.5}'""")
    spoil(path, "PRAGMA user_version = 1")
    for _ in range(2):
        store = ScoreStore(path)
        assert store.read_scores(WHO, "q", ["a"]) == [0.5]
        assert store.read_events("run") == [{"cost": 1.5}]
        assert store.resolved_model(WHO) == "m-2024"
        store.close()


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


def test_who_asks_another_model_or_has_no_locks_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "s.sqlite"
    with lock_models(store, [FIRST]), lock_models(store, [SECOND]):
        assert len(list(tmp_path.iterdir())) == 2
    with lock_models(store, [FIRST]), lock_models(tmp_path / "t.sqlite", [FIRST]):
        assert len(list(tmp_path.iterdir())) == 2

    def refuse(path: Path, *, wait: bool) -> int:
        raise OSError(f"{path}: no locks {wait}")

    monkeypatch.setattr(answer_stores, "take_lock", refuse)
    with lock_models(tmp_path / "s.sqlite", [FIRST]), lock_models(tmp_path / "s.sqlite", [FIRST]):
        pass


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the system has no /proc")
def test_a_folder_that_takes_no_file_has_no_lock() -> None:
    with lock_models(Path("/proc/no-store.sqlite"), [FIRST]):
        pass
