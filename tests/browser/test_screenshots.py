"""The README's pictures are taken of a page that is ready, and are small."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import screenshots
from benchmarks.page import measure_opening
from tests.browser.project import Evaluation

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_a_picture_has_the_size_of_the_window_and_a_limit(
    browser: Browser, evaluation: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "new/page.png"
    screenshots.take_picture(browser, evaluation.page, (400, 300), file)
    data = file.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert (int.from_bytes(data[16:20]), int.from_bytes(data[20:24])) == (400, 300)
    monkeypatch.setattr(screenshots, "MAX_BYTES", 1_000)
    with pytest.raises(ValueError, match="1,000 are allowed"):
        screenshots.take_picture(browser, evaluation.page, (400, 300), tmp_path / "large.png")
    assert not (tmp_path / "large.png").exists()


def test_the_bench_reads_the_browsers_own_marks(browser: Browser, evaluation: Evaluation) -> None:
    paint, ready = measure_opening(browser, evaluation.page)
    assert min(paint, ready) > 0
