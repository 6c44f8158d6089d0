"""A scored list on disk: JSON Lines and the record of where it comes from."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.io.provenance import ListMeta, meta_path
from fusion_bench.rerank.candidates import ScoringRequest
from fusion_bench.rerank.scoring_run import ScoringResult
from fusion_bench.util.atomic_files import replace_file

__all__ = ["check_list_path", "dataset_entry", "write_list"]


def check_list_path(path: Path) -> None:
    """Refuse a place where no list can be written before anything is spent.

    Raises:
        ConfigError: Another suffix than ``.jsonl``, or a folder in the way.
    """
    if path.suffix != ".jsonl":
        raise ConfigError(f"--out {path}: rerank lists are written as .jsonl: name such a file")
    if path.is_dir():
        raise ConfigError(f"--out {path}: a folder: name a file in it")
    for folder in path.parents:
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"--out {path}: {folder} is a file: name a folder")


def write_list(
    path: Path,
    work: ScoringRequest,
    result: ScoringResult,
    settings: dict[str, Any],
    ledger: dict[str, Any],
) -> ListMeta:
    """Write the list and its provenance, each whole or not at all.

    Args:
        path: Of the list; the record stands beside it.
        work: What was scored.
        result: What was found.
        settings: The resolved configuration.
        ledger: What the run cost, see ``summarize_events``.

    Returns:
        The record.

    Raises:
        FusionBenchError: The files cannot be written.
    """
    rows = (
        json.dumps({"query": query, "document": document, "score": score}, ensure_ascii=False)
        for query, documents in result.scores.items()
        for document, score in documents.items()
    )
    data = "".join(f"{row}\n" for row in rows).encode()
    meta = ListMeta(
        list_sha256=hashlib.sha256(data).hexdigest(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        dataset=work.dataset,
        system=work.system.name,
        depth=work.depth,
        score_space=result.space,
        asked=result.asked,
        providers=result.providers,
        degraded=result.degraded,
        settings=settings,
        ledger=ledger,
    )
    beside = meta_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.unlink(missing_ok=True)  # a record never stands beside another list
        replace_file(path, data)
        replace_file(beside, f"{meta.model_dump_json(indent=1)}\n".encode())
    except OSError as error:
        raise FusionBenchError(f"{path}: the list cannot be written: {error}") from error
    return meta


def dataset_entry(path: Path, folder: Path, meta: ListMeta) -> str:
    """The lines that make the list part of a ``dataset.yaml``.

    Args:
        path: Of the list.
        folder: The dataset's.
        meta: Its record.
    """
    inside = path.resolve().is_relative_to(folder.resolve())
    place = path.resolve().relative_to(folder.resolve()).as_posix() if inside else path.name
    line = f"  {path.stem}: {{path: {place}, score_space: {meta.score_space}}}"
    return f"rerank:\n{line}"
