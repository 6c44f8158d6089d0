"""The page of the documentation, and all tricks as CSV; run as a module it writes both."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.table import encode_csv
from tests.attacks.gate.baseline_tricks import BASELINES
from tests.attacks.gate.belief_tricks import CACHES, CANDIDATES, COMMITS, REPEATS, VALUES_AND_LISTS
from tests.attacks.gate.experiment_tricks import QUERIES_AND_LISTS, SURROUNDINGS, SYSTEMS
from tests.attacks.gate.policy_tricks import LOOSER, VALUES
from tests.attacks.gate.trick import SEALED

PAGE: Final = Path(__file__).parents[3] / "docs" / "studies" / "gate-tricks.md"
TRICKS: Final = {
    "a looser policy": LOOSER,
    "policy values that mean something else": VALUES,
    "another system": SYSTEMS,
    "other queries, judgments or lists": QUERIES_AND_LISTS,
    "another baseline": BASELINES,
    "a baseline that nothing can reproduce": VALUES_AND_LISTS,
    "another commit": COMMITS,
    "more or fewer repeats": REPEATS,
    "a cache that is part of the change": CACHES,
    "many candidates": CANDIDATES,
    "the surroundings": SURROUNDINGS,
}


HEAD: Final = """\
# What does not make a gate pass

Can a change hide a regression from the gate? The tests try {count} ways. In each, list `a` is
accepted, and the worse list `b` is then gated under the same name. None ends with exit code 0.
[The gate](../reference/gate.md#the-policy-is-part-of-the-baseline) has the rules.

Exit code 1 is a regression, and 2 is a refusal. Code 3 means that nothing proves the values of the
baseline.

| what changes | tricks | exit codes | for example |
|:--|--:|:--|:--|
"""
FOOT: Final = """
[All {count} tricks as CSV](gate-tricks.csv), with the exit code and the text of each.
`python -m tests.attacks.gate.page` writes this page.
"""


def list_rows() -> Iterator[tuple[str, ...]]:
    """Header of the CSV, and a row for each trick."""
    yield "what changes", "tried", "exit code", "the output contains"
    for title, tricks in TRICKS.items():
        for trick in tricks:
            seal = SEALED[0] if trick.says[:2] == SEALED else ""
            rest = [part.strip() for part in trick.says if part not in SEALED]
            yield title, trick.name, str(trick.code), "; ".join(filter(None, [seal, *rest]))


def render_page() -> str:
    """The page of the documentation."""
    count = sum(map(len, TRICKS.values()))
    rows = [
        f"| {title} | {len(tricks)} | {', '.join(sorted({str(t.code) for t in tricks}))} "
        f"| {tricks[0].name} |\n"
        for title, tricks in TRICKS.items()
    ]
    return HEAD.format(count=count) + "".join(rows) + FOOT.format(count=count)


def render_csv() -> str:
    return encode_csv(list(list_rows()))


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
    PAGE.with_suffix(".csv").write_text(render_csv(), encoding="utf-8")
