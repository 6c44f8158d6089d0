"""Whoever does not read text pays nothing for pyarrow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from pathlib import Path
from fusion_bench.io.dataset import load_dataset
dataset = load_dataset(Path(sys.argv[1]))
runs = dataset.aligned(list(dataset.runs))
print(int(runs.ranks.max()), "pyarrow" in sys.modules)
"""


HELP = """
import atexit, sys
from fusion_bench.cli import main
atexit.register(lambda: print("pyarrow" in sys.modules))
main(["--help"])
"""


def made(folder: Path) -> Path:
    """A dataset whose run is large enough to be cached."""
    lines = [f"q{n // 1000} Q0 d{n % 1000} {n % 1000} {-n} a-long-tag" for n in range(40_000)]
    (folder / "a.trec").write_text("\n".join(lines))
    (folder / "qrels.txt").write_text("q1 0 d1 1\n")
    (folder / "dataset.yaml").write_text("name: a\nqrels: qrels.txt\nruns: {a: {path: a.trec}}\n")
    return folder / "dataset.yaml"


def test_where_the_cache_answers_it_is_not_imported(tmp_path: Path) -> None:
    path = made(tmp_path)
    environment = {name: value for name, value in os.environ.items() if "CACHE" not in name}
    command = [sys.executable, "-c", SCRIPT, str(path)]
    answers = [
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        for _ in range(2)
    ]
    assert answers == ["1000 True\n", "1000 False\n"]


def test_help_does_not_import_it() -> None:
    command = [sys.executable, "-c", HELP]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert out.endswith("False\n")
