"""The order of rows and queries in files changes no result."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.project import EXPERIMENT, GATE, QRELS, QUERIES, RERANK, RUN
from tests.attacks.runner import run_here
from tests.gate import cases

EVAL = ("eval", EXPERIMENT, "--no-plots", "--out", "out")
TUNE = ("tune", EXPERIMENT, "--system", "plain", "--trials", "6", "--folds", "2", *EVAL[2:])
#: When, of which file and where: not the same for two runs.
PROVENANCE = {"file", "created", "source_sha256", "date", "updated_at"}


def shuffled(root: Path) -> None:
    """Shuffle the rows of every file, and with them the queries."""
    places = random.Random(7)
    for name in (QRELS, QUERIES, RUN, RUN.replace("a.trec", "b.trec"), RERANK):
        lines = (root / name).read_text().splitlines()
        places.shuffle(lines)
        (root / name).write_text("\n".join(lines) + "\n")


def results(value: object) -> Any:  # noqa: ANN401 - whatever JSON holds
    """A JSON value without its provenance, and mappings by query or field in any order."""
    if isinstance(value, dict):
        return {key: results(item) for key, item in value.items() if key not in PROVENANCE}
    return [results(item) for item in value] if isinstance(value, list) else value


def make_project(root: Path) -> Path:
    """The project with noise, so that no value is the same for many queries."""
    cases.make_project(root)
    noise = random.Random(11)
    for name in (RUN, RUN.replace("a.trec", "b.trec"), RERANK):
        text = (root / name).read_text()
        scored = re.sub(
            r"(?m)^(\S+ Q0 \S+ \d+) \S+", lambda m: f"{m[1]} {noise.random():.3f}", text
        )
        (root / name).write_text(scored)
    return root


def run(root: Path, arguments: tuple[str, ...], report: str) -> Any:  # noqa: ANN401 - JSON
    outcome = run_here(arguments, root)
    assert outcome.code in {0, 1, 3}, outcome.err
    return results(json.loads((root / report).read_text()))


@pytest.mark.parametrize(
    ("arguments", "report", "prepare"),
    [
        (EVAL, "out/report.json", None),
        (TUNE, "out/tuning.json", None),
        (GATE, "reports/mine/gate.json", cases.renew_baseline),
    ],
    ids=["eval", "tune", "gate"],
)
def test_shuffled_files_give_the_same_report(
    arguments: tuple[str, ...],
    report: str,
    prepare: Callable[[Path], Path] | None,
    tmp_path: Path,
) -> None:
    reports = []
    for name in ("first", "second"):
        root = make_project(tmp_path / name)
        if prepare is not None:
            prepare(root)
        if name == "second":
            shuffled(root)
        reports.append(run(root, arguments, report))
    assert reports[0] == reports[1]
