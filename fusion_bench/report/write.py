"""A report as a folder: the record, the page and its figures, each file whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml
from pydantic import BaseModel

from fusion_bench.config.options import PictureOptions
from fusion_bench.config.yaml_files import format_yaml
from fusion_bench.io.outputs import write_files
from fusion_bench.report.markdown import render_page
from fusion_bench.report.page import Figure, NextStep, Page, make_safe_name
from fusion_bench.report.record_rows import csv_files, record_rows
from fusion_bench.util.files import show_path

if TYPE_CHECKING:
    from fusion_bench.evaluation.details.report_details import ReportDetails
    from fusion_bench.evaluation.report_file import Report
    from fusion_bench.report.tuning_records import TuningReport


def write_report(
    report: Report,
    folder: Path,
    options: PictureOptions | None = None,
    *,
    max_figures: int | None = None,
    details: ReportDetails | None = None,
    details_json: bool = False,
    next_steps: Sequence[NextStep] = (),
    tables: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write ``report.json``, ``report.md``, ``report.html`` and the figures of an evaluation.

    Args:
        report: What to write.
        folder: Where to; created if missing.
        options: Whether to draw figures, which imports Matplotlib, and to write ``report.html``,
            which imports Jinja; formats.
        max_figures: Only the first figures of each collection; None = all.
        details: What stands behind the values; None = it was not collected.
        details_json: Whether to write ``details.json``, where there are details.
        next_steps: The commands that follow, for ``report.html``.
        tables: File name → text of more files.

    Returns:
        The files, ``report.json`` first.

    Raises:
        FusionBenchError: The folder cannot be written to.
    """
    from fusion_bench.evaluation.report_file import read_last_report
    from fusion_bench.report import evaluation_page
    from fusion_bench.report.html.pages import evaluation_html

    options = options or PictureOptions()
    figures: list[list[Figure]] = []
    if options.plots:
        from fusion_bench.report.plots import make_figures

        names: set[str] = set()
        for collection in report.collections:
            figures.append([])
            for figure in islice(make_figures("evaluation", report, collection), max_figures):
                name = make_safe_name(figure.file.removesuffix(".png"))
                stem = f"{make_safe_name(collection.name)}-{name}"
                # The first free one; no file system may take two names for one, whatever the case.
                stems = (stem, *(f"{stem}-{n}" for n in range(1, len(names) + 1)))
                stem = next(stem for stem in stems if stem.lower() not in names)
                names.add(stem.lower())
                figures[-1].append(replace(figure, file=f"{stem}.{options.plot_format}"))
    page = place_figures(evaluation_page.build_page(report), figures)
    texts = {"report.json": f"{report.model_dump_json()}\n", "report.md": render_page(page)}
    if options.html:  # with what changed since the report that the folder holds
        texts["report.html"] = evaluation_html(
            report, details, read_last_report(folder), next_steps=next_steps
        )
    if details and details_json:
        data = json.dumps(details.to_dict(), ensure_ascii=False, separators=(",", ":"))
        texts["details.json"] = f"{data}\n"
    return write_files(folder, {**texts, **(tables or {})}, draw_figures(page))


def place_figures(page: Page, figures: Sequence[Sequence[Figure]]) -> Page:
    """The page with the figures of each collection beside its first table."""
    keys = {f"collection {i}": each for i, each in enumerate(figures)}
    placed = []
    for section in page.sections:
        drawn, parts = keys.get(section.key, ()), section.parts
        around = (*drawn[:1], *parts[:1], *drawn[1:], *parts[1:])
        placed.append(replace(section, parts=around))
    return replace(page, sections=tuple(placed))


def write_tuning(
    report: TuningReport,
    folder: Path,
    options: PictureOptions | None = None,
    *,
    tuned: str,
    next_steps: Sequence[NextStep] = (),
) -> list[Path]:
    """Write ``tuning.json``, ``.md`` and ``.html``, ``tuned.yaml``, ``front.yaml`` and the figures.

    Args:
        report: What to write.
        folder: Where to; created if missing.
        options: Whether to draw figures, which imports Matplotlib, and to write ``tuning.html``;
            formats.
        tuned: The tuned experiment as YAML, which ``eval`` takes unchanged.
        next_steps: The commands that follow, for ``tuning.html``.

    Returns:
        The files, ``tuning.json`` first.

    Raises:
        FusionBenchError: The folder cannot be written to.
    """
    from fusion_bench.report import tuning_page
    from fusion_bench.report.tuning_pictures import tuning_html

    options = options or PictureOptions()
    figures: tuple[Figure, ...] = ()
    if options.plots:
        from fusion_bench.report.plots import make_figures

        figures = tuple(
            replace(figure, file=f"{figure.file.removesuffix('.png')}.{options.plot_format}")
            for figure in make_figures("tuning", report)
        )
    if not report.provenance.v2_enabled:
        tuned = f"{V1_NOTE}{tuned}"
    path = show_path(folder / "tuned.yaml")
    page = tuning_page.build_page(report, figures, path)
    tables: dict[str, str] = {}
    if options.latex:
        from fusion_bench.report.latex import render_latex_tables

        tables = render_latex_tables(page, "tuning")
    front: dict[str, str] = {}
    if report.front is not None:
        # The efficient systems take the place of the tuned one.
        data = yaml.safe_load(tuned)
        base = data["baseline"]
        named = {f"{base}, {report.front.point_name(p)}": p for p in report.front.efficient_points}
        data["description"] = "Quality against rerank effort: the efficient systems. See tuning.md."
        efficient = {name: point.config for name, point in named.items()}
        data["systems"] = {base: data["systems"][base]} | efficient
        front["front.yaml"] = f"{V1_NOTE * tuned.startswith(V1_NOTE)}{format_yaml(data)}"
    html = tuning_html(report, path, next_steps=next_steps) if options.html else ""
    texts = {
        "tuning.json": f"{report.model_dump_json()}\n",
        "tuning.md": render_page(page),
        **({"tuning.html": html} if html else {}),
        "tuned.yaml": tuned,
        **front,
        **tables,
        **csv_files("tuning", record_rows(report), options.csv),
    }
    return write_files(folder, texts, draw_figures(page))


def write_record(
    name: str,
    record: BaseModel,
    page: Page,
    folder: Path,
    figures: Mapping[str, bytes] | None = None,
) -> list[Path]:
    """Write a record and its page, ``NAME.json`` and ``NAME.md``.

    Args:
        name: What the files are called.
        record: What to write.
        page: What it says.
        folder: Where to; created if missing.
        figures: File name → contents of the figures that the page shows.

    Raises:
        FusionBenchError: The folder cannot be written to.
    """
    text = f"{record.model_dump_json()}\n"
    texts = {f"{name}.json": text, f"{name}.md": render_page(page)}
    return write_files(folder, texts, dict(figures or {}))


def draw_figures(page: Page) -> dict[str, bytes]:
    """File name → contents of the figures of a page; imports Matplotlib where there are some."""
    if not page.figures:
        return {}
    from fusion_bench.report.plots import render_png, render_svg

    return {
        figure.file: (render_svg if figure.file.endswith(".svg") else render_png)(figure.draw())
        for figure in page.figures
    }


#: First line of what is tuned while the switch is off.
V1_NOTE: Final = "# RAG_FUSION_V2_ENABLED was off: what this file holds ran as version 1.\n"
