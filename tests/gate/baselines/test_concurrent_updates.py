"""Updates at the same time: each reason is kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fusion_bench.gate.baselines.storage import read_baseline
from tests.gate import cases

#: Generous: an update takes a second.
LIMIT = 120
REASONS = tuple(f"reason {i}" for i in range(4))


def test_no_reason_is_lost(tmp_path: Path) -> None:
    root = cases.make_project(tmp_path)
    baseline = cases.renew_baseline(root)
    command = (sys.executable, "-m", "fusion_bench", "gate", cases.EXPERIMENT, "--update")
    started = [
        subprocess.Popen(
            [*command, "--reason", reason],
            cwd=root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for reason in REASONS
    ]
    errors = [process.communicate(timeout=LIMIT)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0, 0], errors
    kept = read_baseline(baseline)
    assert kept is not None
    [update] = kept.history
    assert update.reasons[0] == "first"
    assert set(update.reasons[1:]) == set(REASONS)
    assert [path.name for path in baseline.parent.iterdir()] == ["mine.json"]
