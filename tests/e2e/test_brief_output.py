"""What commands print at their default on the collections of this repository: few short lines."""

from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.report.terminal import MAX_ROWS
from tests.golden.test_pages import COLUMNS, MAX_LINES, MAX_PASSED, PIPE_COLUMNS

ROOT = Path(__file__).parents[2]
EXPERIMENT = "experiments/default.yaml"
#: Command → the words of its call. OUT is a folder; the first command writes a report there.
CALLS = {
    "eval": f"eval {EXPERIMENT} --no-html --out OUT",
    "compare": "compare OUT OUT",
    "dataset check": "dataset check attack",
    "diagnose": f"diagnose {EXPERIMENT} --out OUT/diagnosis",
    "gate": f"gate {EXPERIMENT} --no-html --out OUT/gate",
    "lint": f"lint {EXPERIMENT}",
    "power": "power --from OUT/report.json",
}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.mark.parametrize("command", CALLS)
def test_lines_of_built_in_data(
    command: str,
    out: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    assert main(CALLS[command].replace("OUT", str(out)).split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert 1 < len(lines) <= (MAX_PASSED if command == "gate" else MAX_LINES)
    assert max(len(line.replace(str(out), "OUT")) for line in lines) <= PIPE_COLUMNS
    rule = next((i for i, line in enumerate(lines) if line.startswith("───")), None)
    if rule is not None:
        assert [*lines[rule + 1 :], ""].index("") <= MAX_ROWS
