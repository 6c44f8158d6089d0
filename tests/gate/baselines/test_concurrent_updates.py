"""Updates at the same time: each reason is kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fusion_bench.gate.baseline_files import read_baseline
from tests.attacks.runner import child_environment
from tests.gate import cases

#: Generous: an update takes a second.
LIMIT = 240
REASONS = tuple(f"reason {i}" for i in range(4))
#: Forks a process for each reason, once everything is imported: they start together.
UPDATES = """
import os, sys
from fusion_bench.cli import gate, main
from fusion_bench.gate import run

def update_baseline(reason):
    if child := os.fork():
        return child
    os._exit(main(["gate", sys.argv[1], "--update", "--reason", reason]))

children = [update_baseline(reason) for reason in sys.argv[2:]]
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""


def test_no_reason_is_lost(tmp_path: Path) -> None:
    root = cases.make_project(tmp_path)
    baseline = cases.renew_baseline(root)
    done = subprocess.run(
        [sys.executable, "-c", UPDATES, cases.EXPERIMENT, *REASONS],
        cwd=root,
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "[0, 0, 0, 0]", done.stderr
    kept = read_baseline(baseline)
    assert kept is not None
    [update] = kept.history
    assert update.reasons[0] == "first"
    assert set(update.reasons[1:]) == set(REASONS)
    assert [path.name for path in baseline.parent.iterdir()] == ["mine.json"]
