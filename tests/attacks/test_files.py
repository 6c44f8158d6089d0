"""What stands in the place of a file, and is none: refused at once, never waited for."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attacks.attack import Attack
from tests.attacks.project import (
    BASELINE,
    DATASET,
    EVAL,
    EXPERIMENT,
    GATE,
    QRELS,
    QUERIES,
    RERANK,
    RUN,
    TUNE,
    UPDATE,
)
from tests.attacks.runner import run_attack
from tests.edits import Edit, and_then, folder, link, pipe, replaced, unix_socket

META = f"{RERANK}.meta.json"
LOOKS = "datasets/mine/looks.jsonl"
COMPARE = ("compare", "--qrels", QRELS, RUN, "datasets/mine/b.trec")
LOG = "reports/mine/tuning/trials.jsonl"
#: What is stored, the command that opens ``s.db`` for it, and how its message begins.
DATABASES = (
    ("storage", (*TUNE, "--storage", "sqlite:///s.db"), "--storage sqlite:///s.db: "),
    (
        "export",
        (*TUNE, "--export-study", "sqlite+pysqlite:///s.db"),
        "--export-study sqlite+pysqlite:///s.db",
    ),
)
BLENDED = replaced(
    EXPERIMENT, "live: {runs: [a]}", "live: {runs: [a], blend: {method: replace, reranker: r}}"
)
KINDS: tuple[tuple[str, Callable[[str], Edit]], ...] = (
    ("a named pipe", pipe),
    ("a socket", unix_socket),
    ("a device", lambda name: link(name, "/dev/zero")),
    ("a folder", folder),
)


def in_folder(name: str, spoil: Callable[[str], Edit]) -> Edit:
    """The same in a folder that is not there yet."""

    def make(root: Path) -> None:
        (root / name).parent.mkdir(parents=True)
        spoil(name)(root)

    return make


#: What a file is, its path, the command that reads it, and what the message says of any kind.
FILES = (
    ("experiment", EXPERIMENT, EVAL, ""),
    ("dataset.yaml", DATASET, EVAL, ""),
    ("run file", RUN, COMPARE, ""),
    ("qrels of run files", QRELS, COMPARE, ""),
    ("provenance record", META, EVAL, ""),
    ("baseline", BASELINE, GATE, ""),
    ("baseline to renew", BASELINE, UPDATE, ""),
    ("ledger of looks", LOOKS, TUNE, ""),
    ("qrels of a dataset", QRELS, EVAL, "dataset.yaml:2: qrels"),
    ("queries", QUERIES, EVAL, "dataset.yaml:3: queries"),
    ("run", RUN, EVAL, "dataset.yaml:5: runs.a.path"),
    ("rerank list", RERANK, EVAL, "dataset.yaml:8: rerank.r.path"),
)
ATTACKS = [
    *(
        Attack(
            f"{kind} as {what}",
            command,
            and_then(BLENDED, spoil(name)) if name in {META, RERANK} else spoil(name),
            says=(place or name if kind != "a folder" else name, "" if place else kind),
        )
        for what, name, command, place in FILES
        for kind, spoil in (KINDS if not place else KINDS[:2])
    ),
    *(
        Attack(f"{kind} as {what}", command, spoil("s.db"), says=(says, kind))
        for what, command, says in DATABASES
        for kind, spoil in KINDS
    ),
    *(
        Attack(f"{kind} as trial log", TUNE, in_folder(LOG, spoil), says=(LOG, kind))
        for kind, spoil in KINDS
    ),
    *(  # a folder stands for the report in it
        Attack(
            f"{kind} as report",
            ("compare", "a.json"),
            spoil("a.json"),
            says=(
                "a.json/report.json: no such file"
                if kind == "a folder"
                else "a.json: not a JSON report: " + kind,
            ),
        )
        for kind, spoil in KINDS
    ),
    *(
        Attack(f"{kind} to write to", (*EVAL, "--markdown", "x"), spoil("x"), says=("x: ", kind))
        for kind, spoil in KINDS
    ),
]


@pytest.mark.parametrize("case", ATTACKS, ids=str)
def test_refused_at_once(case: Attack, project: Path) -> None:
    run_attack(case, project)
