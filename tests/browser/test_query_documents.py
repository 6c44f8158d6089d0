"""An opened query: its documents have the ranks, scores and terms of the lists and ``explain``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fusion_bench.cli import main
from fusion_bench.evaluation.recommendation import preferred_system
from tests.browser.conftest import open_ready
from tests.browser.project import EVIL_DOCUMENT, EVIL_QUERY, EVIL_TEXT, Evaluation

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.browser.conftest import Opener

#: The document of this query that nobody judged.
UNJUDGED = "n7-8"
READ_ROWS = """rows => rows.map((row) => [
  row.dataset.document,
  row.dataset.grade,
  Number(row.querySelector("[data-score]").dataset.score),
  [...row.querySelectorAll("[data-term]")].map(
    ({dataset}) => [dataset.term, Number(dataset.value)]),
])"""


@pytest.fixture
def panel(open_page: Opener, evaluation: Evaluation) -> Locator:
    page: Page = open_ready(open_page, evaluation.page).page
    page.locator(f'[data-queries] [data-query="{EVIL_QUERY}"]').click()
    opened = page.locator("#query-panel")
    opened.wait_for()
    return opened


def rank_in_list(evaluation: Evaluation, source: str) -> int:
    lines = (evaluation.root / f"datasets/shop/{source}.trec").read_text(encoding="utf-8")
    rows = [line.split() for line in lines.splitlines()]
    (rank,) = [int(row[3]) for row in rows if (row[0], row[2]) == (EVIL_QUERY, EVIL_DOCUMENT)]
    return rank


def explained(
    evaluation: Evaluation, system: str, capsys: pytest.CaptureFixture[str]
) -> list[dict[str, Any]]:
    """The first ten documents, as ``explain`` has them."""
    capsys.readouterr()
    experiment = str(evaluation.root / "experiments/mine.yaml")
    assert main(["explain", experiment, EVIL_QUERY, "--system", system, "--json"]) == 0
    documents: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return documents


def shorten(number: float) -> float:
    """The 12 significant digits that decide the order."""
    return float(f"{number:.12g}")


def test_ranks_scores_and_terms_are_those_of_the_lists_and_of_explain(
    panel: Locator, evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (panel.locator("h2").text_content() or "").startswith(EVIL_TEXT.partition("\u2028")[0])
    row = panel.locator(f'[data-block=relevant] tr[data-document="{EVIL_DOCUMENT}"]')
    cells = row.locator("td").all_text_contents()
    systems = [evaluation.collection.baseline, preferred_system(evaluation.collection)]
    ranks = [
        next(
            d["rank"] for d in explained(evaluation, name, capsys) if d["document"] == EVIL_DOCUMENT
        )
        for name in systems
    ]
    assert cells == ["2", *(str(rank_in_list(evaluation, s)) for s in "abc"), *map(str, ranks)]
    for name in systems:
        rows = panel.locator(f'[data-top="{name}"] li').evaluate_all(READ_ROWS)
        assert rows == [
            [
                each["document"],
                "unjudged" if each["grade"] is None else str(each["grade"]),
                shorten(each["score"]),
                [[term["label"], shorten(term["value"])] for term in each["terms"]],
            ]
            for each in explained(evaluation, name, capsys)
        ]
        assert [document for document, grade, *_ in rows if grade == "unjudged"] == [UNJUDGED]
    names = ", ".join(f"{name} 1" for name in reversed(systems))
    note = panel.locator("[data-block=unjudged]").text_content() or ""
    assert note.endswith(f": {names}.")
