"""A dataset that is pulled anew: one dataset or the other, whenever the process is killed."""

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

import fusion_bench
from fusion_bench.engines import pulled_dataset
from fusion_bench.engines.pull import UNFINISHED
from fusion_bench.engines.pulled_dataset import (
    STAGED,
    PulledLists,
    finish_replacement,
    write_folder,
)
from fusion_bench.errors import ConfigError, FusionBenchError, ProviderError
from fusion_bench.io.dataset import load_dataset
from tests.engines.pull import framework_objects, functions
from tests.engines.pull.cases import DENSE, KEYWORD, pull

#: What a process does to files, as Python's audit events name it.
STEPS = {"open", "os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "shutil.rmtree"}
OTHER = '{"id": "q1", "text": "gamma two"}\n{"id": "q3", "text": "delta one"}\n'


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    functions.HOOKS.clear()
    yield
    functions.HOOKS.clear()


def fail_on(*texts: str) -> None:
    def raise_error(_: str, text: str) -> None:
        if text in texts:
            raise ProviderError("no such word", kind="malformed")

    functions.HOOKS[:] = [raise_error]


def read_lists(folder: Path) -> dict[str, Any]:
    dataset = load_dataset(folder / "dataset.yaml", every_query=True)
    texts = {query.id: query.text for query in dataset.queries.values()}
    return {**{name: run.to_dict() for name, run in dataset.runs.items()}, "texts": texts}


def end_at_step(number: int, folder: Path, pulled: PulledLists) -> bool:
    """Write the dataset in a process that is killed before its n-th step; whether it was."""
    child = os.fork()
    if child == 0:  # pragma: no cover - of another process
        left = number

        def count(event: str, given: tuple[object, ...]) -> None:
            nonlocal left
            if event in STEPS and str(folder) in str(given[0]):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        try:
            write_folder(folder, pulled)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


# Python 3.12 warns of forks beside threads; the child writes files and ends.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_killed_process_leaves_the_old_dataset_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    legs = {"bm25": KEYWORD, "dense": DENSE}
    pull(tmp_path, legs)
    shutil.copytree(tmp_path / "mine", tmp_path / "old")
    old = read_lists(tmp_path / "old")
    written: list[PulledLists] = []

    def keep(folder: Path, pulled: PulledLists) -> list[Path]:
        written.append(pulled)
        return write_folder(folder, pulled)

    monkeypatch.setattr(pulled_dataset, "write_folder", keep)
    pull(tmp_path, {"bm25": KEYWORD}, text=OTHER, start_over=True, depth=1, texts=True)
    new = read_lists(tmp_path / "mine")
    assert new.keys() == {"bm25", "texts"}
    assert old["texts"] != new["texts"]
    folder, states, number = tmp_path / "killed", [], 0
    while True:
        number += 1
        shutil.copytree(tmp_path / "old", folder)
        was_killed = end_at_step(number, folder, written[0])
        states.append(read_lists(folder))
        assert states[-1] in (old, new), f"step {number}"
        finish_replacement(folder)
        assert not [*folder.rglob(".*.*.part")]  # second names of files
        assert not (folder / STAGED).exists()
        assert STAGED not in (folder / "dataset.yaml").read_text(encoding="utf-8")
        assert read_lists(folder) == states[-1]
        shutil.rmtree(folder)
        if not was_killed:
            break
    assert states == sorted(states, key=lambda state: state == new)  # never back to the old one
    assert states[0] == old
    assert states[-2] == new
    assert number > 20


def test_judgments_of_a_dataset_that_was_being_replaced_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pull(tmp_path, {"bm25": KEYWORD})
    path = tmp_path / "mine/dataset.yaml"
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", lambda *_: raise_full())
        patch.setattr(shutil, "copyfile", lambda *_: raise_full())
        with pytest.raises(FusionBenchError, match="No space left"):
            pull(tmp_path, {"bm25": KEYWORD}, text=OTHER, start_over=True)
    assert read_lists(tmp_path / "mine")["texts"].keys() == {"q1", "q3"}
    keys = {**yaml.safe_load(path.read_text(encoding="utf-8")), "qrels": "qrels.txt"}
    path.write_text(yaml.safe_dump(keys), encoding="utf-8")
    (tmp_path / "mine/qrels.txt").write_text("q1 0 c 1\n", encoding="utf-8")
    assert pull(tmp_path, {"bm25": KEYWORD}, text=OTHER).record.asked == 0
    keys = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert keys["qrels"] == "qrels.txt"
    assert keys["queries"] == "queries.jsonl"
    assert keys["runs"]["bm25"]["path"] == "runs/bm25.trec.gz"


def raise_full() -> None:
    raise OSError(28, "No space left on device")


def test_an_interrupted_new_pull_leaves_the_old_dataset_and_resumes_without_the_option(
    tmp_path: Path,
) -> None:
    pull(tmp_path, {"bm25": KEYWORD})
    before = read_lists(tmp_path / "mine")
    fail_on("delta one")
    change: dict[str, Any] = {"text": OTHER, "depth": 1, "concurrency": 1}
    with pytest.raises(ProviderError, match="without --replace"):
        pull(tmp_path, {"bm25": KEYWORD}, start_over=True, **change)
    assert read_lists(tmp_path / "mine") == before
    functions.HOOKS.clear()
    with pytest.raises(ConfigError, match="other queries"):
        pull(tmp_path, {"bm25": KEYWORD}, text=OTHER, depth=2)
    with pytest.raises(ConfigError, match=r"settings changed .*\(legs\)"):
        pull(tmp_path, {"bm25": DENSE}, **change)
    assert read_lists(tmp_path / "mine") == before
    assert pull(tmp_path, {"bm25": KEYWORD}, **change).record.asked == 1
    assert read_lists(tmp_path / "mine")["texts"].keys() == {"q1", "q3"}
    with pytest.raises(ConfigError, match="dataset already"):
        pull(tmp_path, {"bm25": KEYWORD}, **change)


def test_queries_that_were_skipped_are_asked_again_and_no_other(tmp_path: Path) -> None:
    fail_on("two")
    legs = {"bm25": KEYWORD, "dense": DENSE}
    pulled = pull(tmp_path, legs, skip_failed=True)
    assert (pulled.record.is_degraded, [*pulled.record.failed]) == (True, ["q2"])
    assert "no other" in pulled.notes[-1]
    with pytest.raises(ProviderError, match="no such word"):
        pull(tmp_path, legs)
    assert read_lists(tmp_path / "mine")["texts"].keys() == {"q1"}
    functions.HOOKS.clear()
    functions.CALLS.clear()
    pulled = pull(tmp_path, legs)
    assert {text for _, text in functions.CALLS} == {"two"}
    assert pulled.record.queries == 2
    assert pulled.record.failed == {}
    lists = read_lists(tmp_path / "mine")
    assert lists["bm25"].keys() == lists["dense"].keys() == {"q1", "q2"}
    assert not (tmp_path / "mine" / UNFINISHED).exists()


def test_the_replay_of_an_earlier_pull_is_named(tmp_path: Path) -> None:
    module = "tests.engines.pull.framework_objects"
    leg = {"retriever": f"{module}:PLAIN"}
    framework_objects.PLAIN.documents = [
        SimpleNamespace(id=name, page_content="t", metadata={}) for name in "abc"
    ]
    settings = {"legs": {"a": leg, "b": leg}, "fused": {**leg, "fusion": {"c": 60}}}
    path = tmp_path / "mine/experiment.yaml"
    notes = []
    for depth in (2, 2, 3):
        pulled = fusion_bench.pull(
            "langchain",
            {"q1": "x"},
            path.parent,
            settings=settings,
            depth=depth,
            start_over=path.exists(),
        )
        notes.append([note for note in pulled.notes if "its replay has the window" in note])
    assert [len(each) for each in notes] == [0, 0, 1]
    replay = yaml.safe_load(path.read_text(encoding="utf-8"))["systems"]["replay"]
    assert (replay["depth"], replay["top_k"]) == (2, 2)
    path.unlink()
    fusion_bench.pull(
        "langchain", {"q1": "x"}, path.parent, settings=settings, depth=3, start_over=True
    )
    replay = yaml.safe_load(path.read_text(encoding="utf-8"))["systems"]["replay"]
    assert (replay["depth"], replay["top_k"]) == (3, 3)
