"""The order of rows and queries in files, and of entries in dataset.yaml, changes no result."""

import json
import random
import re
import shutil
import string
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import yaml

from fusion_bench.io.dataset import load_dataset
from tests import tiny
from tests.attacks.project import DATASET, EXPERIMENT, GATE, QRELS, QUERIES, RERANK, RUN
from tests.attacks.runner import run_here
from tests.gate import cases

EVAL = ("eval", EXPERIMENT, "--no-plots", "--out", "out")
TUNE = ("tune", EXPERIMENT, "--system", "mixed", "--trials", "6", "--folds", "2", *EVAL[2:])
THIRD_RUN, SECOND_RERANK = "datasets/mine/c.trec", "datasets/mine/s.trec"
#: All files of ranked lists.
RANKED = (RUN, "datasets/mine/b.trec", THIRD_RUN, RERANK, SECOND_RERANK)
#: Systems that name their runs in another order than the dataset.
SYSTEMS = """\
  sum: {runs: [c, a, b], fusion: {method: comb_sum}}
  mixed: {runs: [b, c, a], blend: {method: linear, reranker: s, depth: 5, missing: zero}}
"""
#: When, of which file and where: not the same for two runs.
PROVENANCE = {"file", "created", "source_sha256", "date", "updated_at"}


def shuffled(root: Path) -> None:
    """Shuffle the rows of every file, and with them the queries."""
    places = random.Random(7)
    for name in (QRELS, QUERIES, *RANKED):
        lines = (root / name).read_text().splitlines()
        places.shuffle(lines)
        (root / name).write_text("\n".join(lines) + "\n")


def with_entries_reversed(root: Path) -> None:
    path = root / DATASET
    written = yaml.safe_load(path.read_text())
    for key in ("runs", "rerank"):
        written[key] = dict(reversed(written[key].items()))
    path.write_text(yaml.safe_dump(dict(reversed(written.items())), sort_keys=False))


def results(value: object) -> Any:  # noqa: ANN401 - whatever JSON holds
    """A JSON value without its provenance, and mappings by query or field in any order.

    Reports list the runs of a dataset as its ``dataset.yaml`` does.
    """
    if isinstance(value, dict):
        return {
            key: sorted(map(results, item), key=itemgetter("name"))
            if key == "runs" and isinstance(item, list) and isinstance(item[0], dict)
            else results(item)
            for key, item in value.items()
            if key not in PROVENANCE
        }
    return [results(item) for item in value] if isinstance(value, list) else value


def make_project(root: Path) -> Path:
    """The project with noise, so that no value is the same for many queries, and a third run.

    Three queries each have a similar text; with ``groups: auto`` that joins some of their groups.
    """
    cases.make_project(root)
    noise = random.Random(11)
    shutil.copy(root / RUN, root / THIRD_RUN)
    shutil.copy(root / RERANK, root / SECOND_RERANK)
    for name in RANKED:
        text = (root / name).read_text()
        scored = re.sub(
            r"(?m)^(\S+ Q0 \S+ \d+) \S+", lambda m: f"{m[1]} {noise.random():.3f}", text
        )
        (root / name).write_text(scored)
    entries = (
        "  c: {path: c.trec, roles: [meta]}\nrerank:\n  s: {path: s.trec, score_space: unit}\n"
    )
    tiny.edit(root, DATASET, "rerank:\n", entries)
    tiny.edit(root, EXPERIMENT, "gate:\n", f"{SYSTEMS}gate:\n")
    words = ["".join(noise.choices(string.ascii_lowercase, k=30)) for _ in range(20)]
    queries = [json.loads(line) for line in (root / QUERIES).read_text().splitlines()]
    for number, query in enumerate(queries):
        query["text"] = f"{words[number * 7 % 20]} {number % 3}"
    (root / QUERIES).write_text("".join(f"{json.dumps(query)}\n" for query in queries))
    return root


def with_groups(root: Path) -> None:
    tiny.edit(root, DATASET, "queries: queries.jsonl\n", "queries: queries.jsonl\ngroups: auto\n")
    groups = load_dataset(root / DATASET, cache=False).queries.values()
    assert 1 < len({query.group for query in groups}) < cases.QUERIES / 2


def run(root: Path, arguments: tuple[str, ...], report: str) -> Any:  # noqa: ANN401 - JSON
    outcome = run_here(arguments, root)
    assert outcome.code in {0, 1, 3}, outcome.err
    return results(json.loads((root / report).read_text()))


@pytest.mark.parametrize(
    ("arguments", "report", "prepare"),
    [
        (EVAL, "out/report.json", ()),
        (EVAL, "out/report.json", (with_groups,)),
        (TUNE, "out/tuning.json", (with_groups,)),
        (GATE, "reports/mine/gate.json", (with_groups, cases.renew_baseline)),
    ],
    ids=["eval", "eval by groups", "tune", "gate"],
)
def test_files_in_another_order_give_the_same_report(
    arguments: tuple[str, ...],
    report: str,
    prepare: tuple[Callable[[Path], object], ...],
    tmp_path: Path,
) -> None:
    reports = []
    for name in ("first", "second"):
        root = make_project(tmp_path / name)
        for step in prepare:
            step(root)
        if name == "second":
            shuffled(root)
            with_entries_reversed(root)
        reports.append(run(root, arguments, report))
    assert reports[0] == reports[1]
