"""The page of the documentation with all tricks; run as a module it writes the page."""

from pathlib import Path
from typing import Final

from fusion_bench.report.markdown import escape_markdown
from tests.attacks.gate.baseline_tricks import BASELINES
from tests.attacks.gate.belief_tricks import CACHES, CANDIDATES, COMMITS, REPEATS, VALUES_AND_LISTS
from tests.attacks.gate.experiment_tricks import QUERIES_AND_LISTS, SURROUNDINGS, SYSTEMS
from tests.attacks.gate.policy_tricks import LOOSER, VALUES
from tests.attacks.gate.trick import SEALED

PAGE: Final = Path(__file__).parents[3] / "docs" / "studies" / "gate-tricks.md"
TRICKS: Final = {
    "A looser policy": LOOSER,
    "Values that mean something else": VALUES,
    "Another system": SYSTEMS,
    "Other queries, judgments and lists": QUERIES_AND_LISTS,
    "Another baseline": BASELINES,
    "A baseline that nothing can reproduce": VALUES_AND_LISTS,
    "Another commit": COMMITS,
    "More repeats, or fewer": REPEATS,
    "A cache that came with the change": CACHES,
    "Many candidates": CANDIDATES,
    "Surroundings": SURROUNDINGS,
}


def render_table() -> str:
    """The page of the documentation."""
    count = sum(map(len, TRICKS.values()))
    rows = [
        "# What does not make a gate pass",
        "",
        f"{count} ways to let a worse candidate pass. In each, list `a` was accepted, and the",
        "worse list `b` is gated under the same name. None ends with exit code 0; the tests run",
        "them all. Code 1 is a regression, code 2 a refusal. Code 3 means that nothing proves the",
        "baseline's values. The rules are in",
        "[The gate](../reference/gate.md#the-policy-is-part-of-the-baseline).",
    ]
    for title, tricks in TRICKS.items():
        rows += ["", f"## {title}", "", "| tried | exit code | the output says |", "|---|---|---|"]
        for trick in tricks:
            says = "; ".join(escape_markdown(part) for part in trick.says if part not in SEALED)
            says = "; ".join(filter(None, (SEALED[0] if trick.says[:2] == SEALED else "", says)))
            rows.append(f"| {trick.name} | {trick.code} | {says} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render_table(), encoding="utf-8")
