"""Tables of the pages that take seconds to make are those that today's code makes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from benchmarks.studies import classify_table, policies, referee


def read_block(page: Path, mark: str) -> str:
    """What stands between the marks of a page."""
    text = page.read_text(encoding="utf-8")
    return text.split(f"<!-- {mark} -->")[1].split(f"<!-- /{mark} -->")[0].strip()


@cache
def quick_tables() -> dict[str, str]:
    return dict(referee.make_quick_tables())


@pytest.mark.parametrize("mark", ["types", "english", "weights", "dilutions"])
def test_tables_of_the_referee_are_up_to_date(mark: str) -> None:
    made = quick_tables()[mark]
    assert read_block(referee.PAGE, mark) == made, (
        "run python -m benchmarks.studies.referee --write"
    )


def test_published_weights_by_type_are_up_to_date() -> None:
    made = classify_table.make_tables(0)
    rows = made["types"].splitlines()
    stored = read_block(classify_table.PAGE, "types").splitlines()
    assert stored[: len(rows)] == rows, "run python -m benchmarks.studies.classify_table --write"
    assert read_block(classify_table.PAGE, "agreement") == made["agreement"]


def test_tables_of_policies_are_those_of_the_stored_results() -> None:
    results = policies.read_results()
    made = {"counts": policies.format_counts(results), "policies": policies.format_table(results)}
    for mark, table in made.items():
        assert read_block(policies.PAGE, mark) == table, (
            "run python -m benchmarks.studies.policies --table"
        )
