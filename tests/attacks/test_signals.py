"""Ctrl-C and SIGTERM at any moment: one line, the right exit code, nothing written."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks.project import EVAL
from tests.attacks.runner import LIMIT, child_environment, read_files
from tests.child_processes import drop_progress

SIGNALS = "fusion_bench.util.signals"
#: A signal, the module at whose import it comes, and whether errors are JSON.
MOMENTS = [
    (signal.SIGINT, SIGNALS, False),
    (signal.SIGINT, "fusion_bench.cli", True),
    (signal.SIGTERM, "fusion_bench.cli", True),
    (signal.SIGINT, "typer", False),
    (signal.SIGINT, "numpy", False),
    (signal.SIGTERM, "numpy", False),
    (signal.SIGINT, "fusion_bench.ranking._native", True),
    (signal.SIGTERM, "fusion_bench.ranking._native", False),
]
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


@pytest.mark.parametrize(("number", "module", "as_json"), MOMENTS)
def test_a_signal_while_it_imports_is_one_line(
    number: signal.Signals, module: str, as_json: bool, project: Path
) -> None:
    files = read_files(project)
    arguments = [*EVAL, "--json"] if as_json else EVAL
    done = subprocess.run(
        [sys.executable, "-m", "tests.attacks.interrupted_import", str(number), module, *arguments],
        cwd=project,
        env=child_environment(),
        # Whoever runs the tests in the background has the signal ignored, and children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 128 + number
    errors = drop_progress(done.stderr).splitlines()
    if as_json:
        assert json.loads(done.stdout)["error"]["message"] == WORDS[number]
        assert errors == []
    else:
        assert (done.stdout, errors) == ("", [f"error: {WORDS[number]}"])
    assert read_files(project) == files
