"""A report as a folder: the record, the page and its pictures, each file whole or not at all."""

from __future__ import annotations

import re
from pathlib import Path

from fusion_bench.errors import FusionBenchError
from fusion_bench.evaluation.report_records import Report
from fusion_bench.report import markdown
from fusion_bench.report.markdown import Picture
from fusion_bench.report.tables import level
from fusion_bench.util.atomic_files import replace_file

__all__ = ["write"]

#: Longer parts of a file name are cut.
LONGEST = 60


def write(report: Report, folder: Path, *, plots: bool = True) -> list[Path]:
    """Write ``report.json``, ``report.md`` and the pictures.

    Everything is made before anything is written, and each file is written beside its place and
    then moved there, so a failure leaves no file half-written.

    Args:
        report: What to write.
        folder: Where to; made if need be.
        plots: Whether to draw pictures, which loads matplotlib.

    Returns:
        What was written, ``report.json`` first.

    Raises:
        FusionBenchError: The folder cannot be written to.
    """
    pictures = _pictures(report) if plots else {}
    contents = {
        "report.json": f"{report.model_dump_json()}\n".encode(),
        "report.md": markdown.render(report, tuple(pictures)).encode(),
        **{picture.file: data for picture, data in pictures.items()},
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [replace_file(folder / name, data) for name, data in contents.items()]
    except OSError as error:
        raise FusionBenchError(f"{folder}: the report cannot be written: {error}") from error


def _pictures(report: Report) -> dict[Picture, bytes]:
    from fusion_bench.report import plots

    made: dict[Picture, bytes] = {}

    def keep(index: int, title: str, what: str, data: bytes) -> None:
        collection = report.collections[index]
        stem = f"{_safe(collection.name)}-{_safe(what)}"
        taken = {picture.file.lower() for picture in made}
        names = (f"{stem}{f'-{n}' if n else ''}.png" for n in range(len(taken) + 1))
        file = next(name for name in names if name.lower() not in taken)
        made[Picture(index, title, file)] = data

    for i, collection in enumerate(report.collections):
        for measure in collection.measures:
            figure = plots.bars(collection, measure, alpha=level(report))
            title = f"{measure} on {collection.name}, by system"
            keep(i, title, measure, plots.png(figure))
        if collection.comparisons:
            figure = plots.differences(collection)
            title = f"{collection.primary} on {collection.name}, differences per query"
            keep(i, title, f"{collection.primary}-differences", plots.png(figure))
    return made


def _safe(text: str) -> str:
    """A part of a file name: letters, digits and few marks, so no path and no hidden file."""
    kept = re.sub(r"[^A-Za-z0-9@._-]+", "-", text)
    kept = re.sub(r"-*@-*", "@", kept).strip("-.")
    return kept[:LONGEST].strip("-.") or "unnamed"
