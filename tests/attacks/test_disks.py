"""Folders that are read-only and disks that are full: one line, nothing is left, and on it goes."""

import tempfile
from pathlib import Path

import pytest

from fusion_bench.io.outputs import RECORD
from tests.attacks.attack import Attack
from tests.attacks.fork_server import ForkServer
from tests.attacks.project import EVAL, EXPERIMENT, QRELS, RUN, TUNE, UPDATE
from tests.attacks.runner import check_files, check_streams, read_files
from tests.attacks.texts import add_texts

FUSE = ("fuse", EXPERIMENT, "--system", "plain", "--out", "f.trec")
TRY = ("try", "--qrels", QRELS, RUN, "datasets/mine/b.trec", "--no-plots", "--save", "kept")
SCORE = ("rerank", "--dataset", "mine", "--system", "a", "--provider", "noop")
CACHED = {"FUSION_BENCH_CACHE": "cache"}
RENEW = (*UPDATE[:-1], "texts")


def refused(part: str, command: tuple[str, ...], *says: str, writes: str = "") -> Attack:
    name = f"{part}: {' '.join(command)}"
    return Attack(name, command, says=says, writes=(writes,), next_exit_code=0)


ATTACKS = [
    # Of files that belong together none is left.
    refused("kept/experiment.yaml", TRY, "experiment.yaml: cannot", writes="reports/**"),
    # Read-only folders.
    refused("reports", EVAL, "reports"),
    refused("reports", RENEW, "reports/baselines/mine.json: cannot be written"),
    refused("reports", SCORE, "scores.sqlite"),
    refused("datasets", TUNE, "looks.jsonl: cannot be written", writes="reports/**"),
    refused("f.trec", FUSE, "f.trec: cannot be written", writes=RECORD),
]


@pytest.mark.parametrize("case", ATTACKS, ids=str)
def test_one_line_and_the_next_run_goes_on(case: Attack, project: Path, server: ForkServer) -> None:
    add_texts(project)
    before = read_files(project)
    part = case.name.partition(":")[0]
    outcome = server.run(case.arguments, project, before=("refuse_changes", part))
    check_streams(case, outcome)
    check_files(case, before, read_files(project), project)
    again = server.run(case.arguments, project)
    assert again.code == case.next_exit_code, again


@pytest.mark.parametrize("error", ["EROFS", "ENOSPC"])
@pytest.mark.parametrize("part", ["cache", tempfile.gettempdir()])
def test_what_is_only_there_for_speed_or_a_check_is_no_failure(
    part: str, error: str, project: Path, server: ForkServer
) -> None:
    """The cache, and files in the folder of temporary ones."""
    outcome = server.run(
        (*EVAL, "--markdown", "-"), project, CACHED, before=("refuse_changes", part, error)
    )
    assert (outcome.code, outcome.err) == (0, "")
