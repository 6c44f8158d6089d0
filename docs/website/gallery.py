"""Run the gallery's scripts, and the page that shows them."""

from __future__ import annotations

import os
import runpy
from collections.abc import Sequence
from pathlib import Path

from docs.website.page import ROOT, Page
from docs.website.pictures import GALLERY, Picture

#: Scripts whose picture stands on the gallery's page alone: ``draw`` needs no arguments.
PAGE = "gallery.md"


def list_own_pictures(used: Sequence[Picture]) -> list[Picture]:
    """A picture of each script that no other page calls."""
    called = {picture.script for picture in used}
    names = sorted(path.stem for path in (ROOT / GALLERY).glob("*.py"))
    return [Picture(name, f"pictures/{name}.svg", depth=0) for name in names if name not in called]


def build_gallery(pictures: Sequence[Picture]) -> Page:
    """The page of these pictures, each with its script."""
    intro = (
        "# Gallery\n\nEach picture is drawn by a short script that uses the public Python API "
        "alone. The pictures of single methods stand on [their pages](fuse/index.md).\n"
    )
    parts = [
        f"## {picture.description[0].partition(':')[0]}\n\n{picture.to_markdown()}"
        for picture in pictures
    ]
    return Page(PAGE, "\n".join([intro, *parts]))


def draw_pictures(pictures: Sequence[Picture], folder: Path) -> None:
    """Write the image of each picture; a script is run once, and its ``draw`` once a picture."""
    os.environ["MPLBACKEND"] = "agg"
    import matplotlib.pyplot as plt

    # Without its id and date, the same picture is the same file.
    plt.rcParams |= {"svg.hashsalt": "fusion_bench", "font.size": 9, "figure.autolayout": True}
    scripts = {picture.script for picture in pictures}
    loaded = {name: runpy.run_path(str(ROOT / GALLERY / f"{name}.py")) for name in scripts}
    for picture in pictures:
        path = folder / picture.path
        path.parent.mkdir(parents=True, exist_ok=True)
        figure = loaded[picture.script]["draw"](*picture.arguments)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
