"""A tuning run as a folder: the record, the page, its pictures, and experiments that go on."""

from __future__ import annotations

from pathlib import Path

import yaml

from fusion_bench.errors import FusionBenchError
from fusion_bench.report.tuning import markdown
from fusion_bench.report.tuning import pareto_table as fronts
from fusion_bench.report.tuning.tuning_records import Front, TuningReport
from fusion_bench.util.atomic_files import replace_file

__all__ = ["write"]


def write(tuning: TuningReport, folder: Path, *, tuned: str, plots: bool = True) -> list[Path]:
    """Write ``tuning.json``, ``tuning.md``, ``tuned.yaml``, ``front.yaml`` and the pictures.

    Everything is made before anything is written, and each file is written whole or not at all.

    Args:
        tuning: What to write.
        folder: Where to; made if need be.
        tuned: The tuned experiment as YAML, which ``eval`` takes unchanged.
        plots: Whether to draw pictures, which loads matplotlib.

    Returns:
        What was written, ``tuning.json`` first.

    Raises:
        FusionBenchError: The folder cannot be written to.
    """
    pictures: dict[markdown.Picture, bytes] = {}
    if plots:
        from fusion_bench.report.tuning.figures import drawn

        pictures = drawn(tuning)
    contents = {
        "tuning.json": f"{tuning.model_dump_json()}\n".encode(),
        "tuning.md": markdown.render(tuning, tuple(pictures)).encode(),
        "tuned.yaml": tuned.encode(),
        **({} if tuning.front is None else {"front.yaml": _front(tuned, tuning.front).encode()}),
        **{picture.file: data for picture, data in pictures.items()},
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [replace_file(folder / name, data) for name, data in contents.items()]
    except OSError as error:
        raise FusionBenchError(f"{folder}: the tuning cannot be written: {error}") from error


def _front(tuned: str, front: Front) -> str:
    """The tuned experiment with the efficient systems in place of the tuned one."""
    data = yaml.safe_load(tuned)
    base = data["baseline"]
    efficient = {f"{base}, {fronts.named(front, p)}": p.config for p in front.efficient}
    data["description"] = "Quality against rerank effort: the efficient systems. See tuning.md."
    data["systems"] = {base: data["systems"][base]} | efficient
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
