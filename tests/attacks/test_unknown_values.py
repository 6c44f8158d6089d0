"""Values that no query has: the error names the line or the option, and the values there are."""

from pathlib import Path

import pytest

from tests.attacks.attack import Attack
from tests.attacks.project import EVAL, EXPERIMENT
from tests.attacks.runner import run_attack
from tests.edits import replaced

TYPES, SPLITS = "(known: global, local)", "(known: all)"
DIAGNOSE = ("diagnose", EXPERIMENT)
#: What is asked for, in the experiment and as an option, and what the error says.
ASKED = (
    ("split: x", ("--split", "x"), "split: mine: unknown split 'x'", SPLITS),
    ("query_type: x", ("--query-type", "x"), "query_type: mine: unknown query type 'x'", TYPES),
    ("where: {type: x}", ("--where", "type=x"), "where.type: mine: unknown query type", TYPES),
    ("where: {group: x}", ("--where", "group=x"), "where.group: mine: unknown group", "(known: g"),
)
ATTACKS = [
    *(
        Attack(
            f"{command[0]} with {line}",
            command,
            replaced(EXPERIMENT, "baseline: plain\n", f"baseline: plain\n{line}\n"),
            says=(f"{EXPERIMENT}:4: {says}", known),
        )
        for line, _, says, known in ASKED
        for command in (EVAL, DIAGNOSE)
    ),
    *(
        Attack(" ".join(option), (*EVAL, *option), says=(f"error: {option[0]}", ": mine: ", known))
        for _, option, _, known in ASKED
    ),
    Attack(
        "fuse --split x",
        ("fuse", EXPERIMENT, "--system", "plain", "--out", "f.trec", "--split", "x"),
        says=("error: --split: mine: unknown split 'x'",),
    ),
]


@pytest.mark.parametrize("case", ATTACKS, ids=str)
def test_refused_with_its_place_and_what_there_is(case: Attack, project: Path) -> None:
    run_attack(case, project)
