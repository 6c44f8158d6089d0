"""Every file that a command owns, as bytes that are no text: exit code 2 and one line, or none."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests import campaign_project
from tests.attacks.project import BASELINE, EVAL, EXPERIMENT, GATE, TUNE, UPDATE, make_project
from tests.attacks.runner import run_here

CAMPAIGN: Final = campaign_project.CAMPAIGN
STATUS: Final = ("campaign", "status", CAMPAIGN)
ASK: Final = ("campaign", "ask", CAMPAIGN, "--set", "fusion.k=20")
OPEN: Final = ("campaign", "open", "experiments/e.yaml", "--asks", "20", "--allow-weak")
FUSE: Final = ("fuse", EXPERIMENT, "--system", "plain", "--out", "f.trec")
COMPARE: Final = ("compare", "reports/mine/report.json", "reports/mine/report.json")
#: What writes the files.
MAKE: Final = (EVAL, UPDATE, GATE, TUNE, FUSE, OPEN, ASK)
#: A file → the commands that read it.
OWNED: Final = {
    f"{CAMPAIGN}/.last-line": (STATUS, ASK),
    f"{CAMPAIGN}/campaign.json": (STATUS, OPEN),
    f"{CAMPAIGN}/.fusion-bench-outputs.jsonl": (STATUS,),
    "datasets/made/campaigns.jsonl": (STATUS, ASK, ("eval", "experiments/e.yaml", "--no-plots")),
    "datasets/mine/looks.jsonl": (TUNE,),
    BASELINE: (GATE, UPDATE),
    BASELINE.replace(".json", ".candidates.jsonl"): (GATE,),
    "reports/mine/report.json": (COMPARE, EVAL),
    "reports/mine/tuning/trials.jsonl": (TUNE,),
    "reports/mine/tuning/tuning.json": (TUNE,),
    "reports/mine/tuning/tuned.yaml": (("lint", "reports/mine/tuning/tuned.yaml"),),
    ".fusion-bench-outputs.jsonl": (FUSE,),
    "reports/mine/.fusion-bench-outputs.jsonl": (EVAL,),
    "reports/mine/.gitignore": (EVAL,),
    EXPERIMENT: (EVAL,),
    "datasets/mine/dataset.yaml": (EVAL,),
    "datasets/mine/queries.jsonl": (EVAL,),
}
#: Bytes that are no UTF-8, from a function of what the file held.
DAMAGES: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "other bytes": lambda _: b"\xff\xfe\x80\x00",
    "bytes behind it": lambda data: data + b"\xc3\x28\n",
    "bytes before it": lambda data: b"\x80" + data,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = campaign_project.make(make_project(tmp_path_factory.mktemp("made")))
    for command in MAKE:
        outcome = run_here(command, root)
        assert outcome.code in {0, 1}, outcome
    return root


@pytest.mark.parametrize("name", OWNED)
def test_bytes_that_are_no_text_are_one_line(name: str, made: Path, tmp_path: Path) -> None:
    for damage, change in DAMAGES.items():
        for number, command in enumerate(OWNED[name]):
            root = shutil.copytree(made, tmp_path / f"{damage} {number}")
            data = (root / name).read_bytes() if (root / name).exists() else b""
            (root / name).write_bytes(change(data))
            outcome = run_here(command, root)
            assert "Traceback" not in outcome.err, (damage, command, outcome)
            assert "this is a bug" not in outcome.err, (damage, command, outcome)
            assert outcome.code in {0, 2}, (damage, command, outcome)
            if outcome.code == 2:
                assert outcome.err.count("\n") == 1, (damage, command, outcome)
