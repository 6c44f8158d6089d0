"""Lists with repeats mean the same to every command: a mean over them, in any order."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.runner import run_here
from tests.tiny import edit
from tests.tune import made

EXPERIMENT = "experiments/e.yaml"
DATASET = "datasets/made/dataset.yaml"
#: Commands that print JSON; ``gate`` compares with a baseline of the same lists.
COMMANDS = {
    "eval": f"eval {EXPERIMENT} --no-html --no-plots",
    "tune": f"tune {EXPERIMENT} --trials 4 --no-plots",
    "gate": f"gate {EXPERIMENT}",
    "export": f"export {EXPERIMENT} --to qdrant --system plain --replay",
    "diagnose": f"diagnose {EXPERIMENT} --system today",
    "explain": f"explain {EXPERIMENT} q1 --system today",
    "lint": f"lint {EXPERIMENT}",
    "dataset show": "dataset show datasets/made",
    "dataset check": "dataset check datasets/made",
}
#: Those whose values are means over repeats; the others show the first one and name it.
MEANS = ("eval", "tune", "gate", "export")
#: What repeats may change: their number, names of lists in warnings, digests, times.
ABOUT_REPEATS = {"trial", "trials", "trial_share", "list_trials", "runs", "digests", "fingerprint"}
ABOUT_REPEATS |= {"provenance", "look", "data", "lists", "started", "seconds", "changes"}
ABOUT_REPEATS |= {"data_warnings", "near_duplicates", "note", "notes"}


def make(root: Path, *kinds: str) -> Path:
    """The made dataset; its list ``good`` has these repeats, equal or with scores of ``bad``."""
    made.make(root)
    edit(root, EXPERIMENT, "tune:\n", "gate: {nDCG@10: {max_drop: 0.05}}\ntune:\n")
    edit(root, EXPERIMENT, "systems:\n", "systems:\n  plain: {runs: [good, bad]}\n")
    folder = root / "datasets/made"
    for number, kind in enumerate(kinds, 1):
        text = (folder / f"{kind}.trec").read_text(encoding="utf-8")
        (folder / f"good-{number}.trec").write_text(text, encoding="utf-8")
    if kinds:
        edit(root, DATASET, "path: good.trec", 'path: "good-*.trec"')
    return root


def run(command: str, root: Path) -> Any:  # noqa: ANN401 - whatever JSON has
    if command == "gate":
        assert (
            run_here((*COMMANDS["gate"].split(), "--update", "--reason", "first"), root).code == 0
        )
    outcome = run_here((*COMMANDS[command].split(), "--json"), root)
    assert outcome.code in (0, 1), outcome.err
    return without_repeats(json.loads(outcome.out))


def without_repeats(data: Any) -> Any:  # noqa: ANN401 - whatever JSON has
    """What does not depend on the number of repeats; numbers to twelve digits."""
    if isinstance(data, dict):
        kept = {key: each for key, each in data.items() if key not in ABOUT_REPEATS}
        return {key: without_repeats(each) for key, each in kept.items()}
    if isinstance(data, list):
        return [without_repeats(each) for each in data]
    return float(f"{data:.11e}") if isinstance(data, float) else data


@pytest.mark.parametrize("command", COMMANDS)
def test_equal_repeats_give_what_one_list_gives(command: str, tmp_path: Path) -> None:
    alone = run(command, make(tmp_path / "alone"))
    assert alone
    assert run(command, make(tmp_path / "equal", "good", "good")) == alone


@pytest.mark.parametrize("command", MEANS)
def test_the_order_of_repeats_changes_no_value(command: str, tmp_path: Path) -> None:
    one = run(command, make(tmp_path / "one", "good", "bad"))
    assert run(command, make(tmp_path / "other", "bad", "good")) == one
    assert run(command, make(tmp_path / "first", "good")) != one
