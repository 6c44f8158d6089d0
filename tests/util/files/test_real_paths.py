"""Paths without links, and links that lead nowhere."""

from __future__ import annotations

from pathlib import Path

from fusion_bench.util.files import resolve_path


def test_links_are_followed_and_those_in_a_circle_stay(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "circle").symlink_to("circle")
    assert resolve_path(tmp_path / "link") == tmp_path.resolve() / "file"
    assert resolve_path(tmp_path / "circle") == tmp_path.resolve() / "circle"
