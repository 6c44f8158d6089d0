"""The disk is full from a random change or size on, and there is room again for the next run."""

import atexit
import json
import random
from functools import cache
from pathlib import Path

import yaml

from tests.attacks.fork_server import ForkServer
from tests.attacks.project import EVAL, EXPERIMENT, GATE, QRELS, QUERIES, RUN, TUNE, make_project
from tests.attacks.runner import read_files
from tests.attacks.texts import add_texts
from tests.attacks.torture import Loop, Tally

LISTS = (RUN, "datasets/mine/b.trec")
UPDATE = ("gate", EXPERIMENT, "--update", "--reason")
#: Every command that writes, in the order of their rounds.
COMMANDS: tuple[tuple[str, ...], ...] = (
    EVAL,
    ("retrieve", "bm25", "--dataset", "mine"),
    UPDATE,
    TUNE,
    (*TUNE, "--storage", "sqlite:///study.db"),
    (*TUNE, "--export-study", "sqlite:///study.db"),
    ("eval", EXPERIMENT),
    GATE,
    ("try", "--qrels", QRELS, *LISTS, "--save", "kept", "--no-plots"),
    ("rerank", "--dataset", "mine", "--system", "a", "--provider", "noop"),
    ("retrieve", "dense", "--dataset", "mine", "--encoder", "minilm"),
    ("fuse", *LISTS, "--out", "fused.trec"),
    ("fuse", *LISTS, "--out", "fused.parquet"),
    ("dataset", "classify", QUERIES, "--out", "p.jsonl", "--records", "r.jsonl"),
    ("diagnose", EXPERIMENT),
    ("export", EXPERIMENT, "--system", "plain", "--to", "qdrant", "--out", "search"),
    ("compare", "--qrels", QRELS, *LISTS, "--html", "--markdown", "compared.md"),
    ("lint", EXPERIMENT, "--markdown", "findings.md"),
    ("power", "--sd", ".2", "--plot", "power.png"),
    ("dataset", "schema", "--out", "schemas"),
)
#: Those that refuse to replace what they wrote.
ONCE = frozenset({"retrieve", "try"})
#: A cache, which small datasets have only where they are told.
ENVIRONMENT = {"FUSION_BENCH_CACHE": "cache"}
#: Ends of the names of files that a command may remove: those of the cache, and SQLite's own.
COMES_AND_GOES = (".npy", "contents.json", "-wal", "-shm", "-journal")
FAULTS = 4


def run_round(seed: int, folder: Path) -> Tally:
    """Let a command fail a few times at different places, then repeat it on a good disk."""
    rng = random.Random(seed)
    command = COMMANDS[seed % len(COMMANDS)]
    root = make_project(folder / "project")
    add_texts(root)
    marker = folder / "failed"
    faults = 0
    server = start_server()
    for number in range(FAULTS):
        known = read_files(root)
        size = rng.choice((None, None, 1_000, 5_000, 20_000))
        fault: tuple[str, *tuple[object, ...]] = ("limit_file_size", size)
        if size is None:
            fault = ("fail_at_change", rng.randrange(30), str(marker))
        outcome = server.run(complete(command, number), root, ENVIRONMENT, before=fault)
        about = (command, fault, outcome)
        assert "Traceback" not in outcome.err, about
        assert outcome.code in (0, 2), about
        marker.unlink(missing_ok=True)
        if outcome.code == 2:
            faults += 1
            assert outcome.err.startswith("error: "), about
            assert outcome.err.count("\n") == 1, about
            assert "Errno" not in outcome.err, about
            check_whole(known, read_files(root), about)
        elif command[0] in ONCE:
            return Tally(faults=faults)
    outcome = server.run(complete(command, FAULTS), root, ENVIRONMENT)
    assert outcome.code == 0, (command, outcome)
    return Tally(faults=faults)


@cache
def start_server() -> ForkServer:
    """One server for all rounds."""
    server = ForkServer()
    atexit.register(server.close)
    return server


def complete(command: tuple[str, ...], number: int) -> tuple[str, ...]:
    """The command; each update has a reason of its own."""
    return (*command, f"try {number}") if command == UPDATE else command


def check_whole(known: dict[str, bytes], after: dict[str, bytes], about: object) -> None:
    """No draft is left, nothing that was there is gone, and each record is whole."""
    drafts = [name for name in after if name.endswith(".part")]
    assert not drafts, (drafts, about)
    lost = {name for name in known.keys() - after.keys() if not name.endswith(COMES_AND_GOES)}
    assert not lost, (lost, about)
    for name, data in after.items():
        if name.endswith(".json"):
            json.loads(data)
        if name.endswith(".yaml"):
            assert yaml.safe_load(data), (name, about)
        if name.endswith((".jsonl", ".trec")):
            assert data.endswith(b"\n") or not data, (name, about)


LOOP = Loop("full disk", run_round, test_rounds=1)
