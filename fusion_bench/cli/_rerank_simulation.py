"""``rerank --simulate``: a stored list under failures and deadlines."""

from __future__ import annotations

import json as encoder
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fusion_bench.cli._base import require_folder
from fusion_bench.cli._console import echo_written
from fusion_bench.cli._progress import progress_bar

if TYPE_CHECKING:
    from fusion_bench.experiment.system import System
    from fusion_bench.rerank.config import RerankConfig
    from fusion_bench.rerank.simulation.simulation_result import SimulationResult

__all__ = ["safe", "simulated"]


def safe(name: str) -> str:
    """A name as a part of a file's name."""
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name).strip(".-") or "list"


def simulated(
    path: Path,
    system: System,
    config: RerankConfig,
    changes: list[str],
    measure: str,
    names: dict[str, str | None],
    out: Path | None,
    *,
    json: bool,
) -> None:
    """Say what failures and deadlines would do to a stored list, and write it down."""
    from fusion_bench.cli._simulation_output import print_study
    from fusion_bench.config.models import validated
    from fusion_bench.rerank.config import apply_overrides
    from fusion_bench.rerank.settings import RerankSettings
    from fusion_bench.rerank.simulation.fault_model import SimulationSettings
    from fusion_bench.rerank.simulation.replay import run_simulation
    from fusion_bench.rerank.simulation.simulation_input import measure_outcomes

    name = f"simulate-{safe(f'{path.parent.name}-{system.name}')}"
    folder = require_folder(out or Path("reports/rerank") / name)
    given = apply_overrides(config.simulation.model_dump(), changes)
    spec = validated(SimulationSettings, given, lambda place: "--set " + ".".join(map(str, place)))
    # What is weighed is the production profile, unless a file says otherwise.
    settings = (
        config.resolved_settings() if config.settings else RerankSettings.for_profile("production")
    )
    quality = measure_outcomes(path, system, measure=measure, **names)
    with progress_bar() as show:
        found = run_simulation(quality, spec, settings, lambda n, of: show("simulating", n, of))
    written = _write_study(found, folder, f"{system.name} on {path.parent.name}")
    if json:
        typer.echo(encoder.dumps(found.as_json()))
        return
    print_study(found)
    echo_written(written)


def _write_study(found: SimulationResult, folder: Path, title: str) -> list[Path]:
    from fusion_bench.report.degradation_plot import degradation
    from fusion_bench.report.plots import png
    from fusion_bench.util.atomic_files import write_atomic

    picture = png(degradation(found.as_json(), f"Degradation of {title}"))
    data = f"{encoder.dumps(found.as_json(), indent=1)}\n".encode()
    return [
        write_atomic(folder / "simulation.json", data),
        write_atomic(folder / "simulation.png", picture),
    ]
