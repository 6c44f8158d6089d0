"""Where the looks at a dataset are counted."""

from __future__ import annotations

import json
import os
import sysconfig
from dataclasses import replace
from pathlib import Path

from fusion_bench.experiment.look_settings import LookSettings
from fusion_bench.report.tuning_records.look import Look
from fusion_bench.tune.looks.ledger import LEDGER_NAME
from fusion_bench.tune.looks.look_counter import UNCOUNTED, LookCounter
from fusion_bench.util.files.real_paths import resolve_path
from fusion_bench.util.files.regular_files import read_regular_text


def find_ledger(
    settings: LookSettings,
    *,
    alpha: float,
    base: Path | None,
    dataset: Path | None,
    out: Path | None,
) -> LookCounter:
    """Where the looks at a dataset are counted.

    Args:
        settings: Of the experiment.
        alpha: Two-sided level of a single look.
        base: Folder of the experiment's file, for a relative ``file``; None = the working folder.
        dataset: Folder of the ``dataset.yaml``; None = the data are in memory.
        out: Folder of the outputs, for a dataset that cannot be written to, or that an installed
            package brought, with which the ledger would go; None = there is none.
    """
    counter = LookCounter(None, alpha, settings.max_queries, earlier=_read_earlier(out))
    if not settings.count:
        return replace(counter, note="'tune.looks.count' is false")
    if settings.file is not None:
        return replace(counter, path=(base or Path()) / settings.file)
    if dataset is None:
        return replace(counter, note=UNCOUNTED.note)
    beside = dataset / LEDGER_NAME
    note = f"{dataset} cannot be written to"
    if _is_installed(dataset):
        note = f"{dataset} belongs to an installed package"
    elif os.access(dataset, os.W_OK):
        return replace(counter, path=beside)
    if out is None:
        return replace(counter, note=f"{note}: name a ledger")
    return replace(counter, path=out / LEDGER_NAME, readonly=beside, note=note)


def _read_earlier(out: Path | None) -> tuple[str, Look] | None:
    """The dataset and the look of the report in a folder; None = there is none to be read."""
    try:
        report = json.loads(read_regular_text((out or Path()) / "tuning.json"))
        return str(report["dataset"]), Look.model_validate(report["look"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _is_installed(dataset: Path) -> bool:
    """Whether a folder lies where packages are installed."""
    places = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    return any(resolve_path(dataset).is_relative_to(resolve_path(Path(place))) for place in places)
