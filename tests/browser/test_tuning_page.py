"""The page of a tuning run draws its pictures from the record."""

from pathlib import Path

import pytest

from fusion_bench.report.tuning_pictures import tuning_html
from tests.browser.accessibility import grave_findings
from tests.browser.conftest import Opener, open_ready
from tests.report.tuning_cases import front, record, thresholds

PICTURES = ["held-out", "history", "slices", "folds", "calibration", "front"]


@pytest.mark.parametrize("width", [400, 1100])
def test_every_picture_is_drawn(open_page: Opener, tmp_path: Path, width: int) -> None:
    report = record(front=front(), thresholds=(thresholds(),))
    file = tmp_path / "tuning.html"
    file.write_text(tuning_html(report), encoding="utf-8")
    opened = open_ready(open_page, file.as_uri(), width=width)
    page = opened.page
    page.wait_for_selector("figure[data-picture='front.png'] svg")
    assert opened.overflow() <= 0
    assert page.locator("figure[hidden]").count() == 0
    drawn = page.locator("figure[data-picture] svg").evaluate_all(
        "pictures => pictures.map(p => p.closest('figure').dataset.picture)"
    )
    assert drawn == [f"{name}.png" for name in PICTURES]
    # No mark of a trial is lost but those below the axis.
    marks = page.locator("figure[data-picture='history.png'] .plot-mark title").all_text_contents()
    best = max(report.completed_trials, key=lambda trial: trial.value or 0.0)
    assert any(text.startswith(f"trial {best.number}: {best.value:.4f}") for text in marks)
    assert not page.locator("svg [d*=NaN], svg [cx=NaN], svg [transform*=NaN]").count()
    assert grave_findings(page) == []
