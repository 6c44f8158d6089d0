"""The files of a pulled dataset: lists, queries, texts, ``dataset.yaml`` and an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fusion_bench.config.files.yaml_source import read_yaml
from fusion_bench.connector import Connector
from fusion_bench.data.final_lists import FINAL_ROLE
from fusion_bench.errors import ConfigError
from fusion_bench.io.outputs import check_output, write_output
from fusion_bench.io.specs.dataset_name import make_dataset_name
from fusion_bench.io.write_run import RunRows, encode_run
from fusion_bench.pull.dataset_file import (
    DATASET_FILE,
    STAGED,
    WRITTEN_BY,
    finish_replacement,
    read_dataset_file,
    write_dataset_file,
)
from fusion_bench.pull.questions import FUSED_LIST, ListPlan
from fusion_bench.pull.record import RECORD_FILE, PullRecord, is_falling
from fusion_bench.pull.store import Answer
from fusion_bench.util.files.atomic_files import require_folder
from fusion_bench.util.files.new_files import remove_on_failure
from fusion_bench.util.json_lines import encode_json_lines
from fusion_bench.util.yaml_text import format_compact_yaml

EXPERIMENT_FILE: Final = "experiment.yaml"
QUERIES_FILE: Final = "queries.jsonl"
DOCUMENTS_FILE: Final = "documents.jsonl"
#: Name of the system that replays the engine's own fusion.
REPLAY: Final = "replay"
RRF: Final = "rrf"


@dataclass(frozen=True)
class PulledLists:
    """Everything that was pulled.

    Attributes:
        name: The dataset's name.
        connector: The engine.
        depth: Most hits of the fused answer, and of legs without a depth of their own.
        plans: The lists that hold a document.
        answers: List → query id → answer.
        queries: The queries as their file has them.
        texts: Document id → text; None = not asked for.
        record: How it was pulled.
    """

    name: str
    connector: Connector
    depth: int
    plans: Sequence[ListPlan]
    answers: Mapping[str, Mapping[str, Answer]]
    queries: Sequence[Mapping[str, Any]]
    texts: Mapping[str, str] | None
    record: PullRecord


def check_folder(folder: Path, *, replace: bool) -> None:
    """Refuse a folder in which something of another origin would be overwritten.

    Raises:
        ConfigError: It is a file, or holds a dataset that this may not replace.
    """
    require_folder(folder)
    path = folder / DATASET_FILE
    if path.exists() and not replace:
        raise ConfigError(
            f"{path}: there is a dataset already: name another folder with --out, or pull it anew "
            "with --start-over"
        )
    if path.exists() and not (folder / RECORD_FILE).exists():
        raise ConfigError(f"{path}: no pull made this dataset: name another folder with --out")
    for name in () if path.exists() else (QUERIES_FILE, DOCUMENTS_FILE):
        check_output(folder / name)


def write_folder(folder: Path, pulled: PulledLists) -> list[Path]:
    """Write the dataset, and an experiment; of an older pull's dataset its judgments stay.

    An older dataset stays readable until the new one is whole.

    Raises:
        FusionBenchError: The folder cannot be written to.
    """
    suffix = ".jsonl.gz" if _has_blanks(pulled) else ".trec.gz"
    lists = {f"runs/{plan.name}{suffix}": _list_rows(plan.name, pulled) for plan in pulled.plans}
    contents = _file_contents(folder, pulled)
    if (folder / DATASET_FILE).exists():
        finish_replacement(folder)
        _write_files(folder / STAGED, lists, contents)
        write_dataset_file(folder, _dataset_keys(folder, pulled, suffix, f"{STAGED}/"))
        finish_replacement(folder)
    else:
        with remove_on_failure() as new:
            names = (*lists, *contents, DATASET_FILE)
            new += [path for name in names if not (path := folder / name).exists()]
            _write_files(folder, lists, contents)
            write_dataset_file(folder, _dataset_keys(folder, pulled, suffix))
    return [folder / name for name in (*lists, *contents, DATASET_FILE)]


def _file_contents(folder: Path, pulled: PulledLists) -> dict[str, bytes]:
    """The files beside the lists, without the ``dataset.yaml``."""
    contents = {QUERIES_FILE: encode_json_lines(pulled.queries)}
    if pulled.texts is not None:
        texts = ({"id": name, "text": text} for name, text in sorted(pulled.texts.items()))
        contents[DOCUMENTS_FILE] = encode_json_lines(texts)
    contents[RECORD_FILE] = f"{pulled.record.model_dump_json(indent=1)}\n".encode()
    if not (folder / EXPERIMENT_FILE).exists():
        contents[EXPERIMENT_FILE] = _experiment_text(pulled).encode()
    return contents


def _write_files(folder: Path, lists: Mapping[str, RunRows], contents: Mapping[str, bytes]) -> None:
    for name, rows in lists.items():
        write_output(folder / name, encode_run(folder / name, rows))
    for name, data in contents.items():
        write_output(folder / name, data)


def _has_blanks(pulled: PulledLists) -> bool:
    """Whether an id has blanks, which a TREC file cannot hold."""
    ids = {str(query["id"]) for query in pulled.queries}
    for answers in pulled.answers.values():
        ids |= {hit.document for answer in answers.values() for hit in answer.hits}
    return any(text.split() != [text] for text in ids)


def _list_rows(name: str, pulled: PulledLists) -> RunRows:
    rows = [
        (query, hit.document, rank, hit.score)
        for query, answer in pulled.answers[name].items()
        for rank, hit in enumerate(answer.hits, start=1)
    ]
    return RunRows(
        name,
        queries=[row[0] for row in rows],
        documents=[row[1] for row in rows],
        ranks=[row[2] for row in rows],
        scores=[row[3] for row in rows],
        sources={},
    )


def _dataset_keys(
    folder: Path, pulled: PulledLists, suffix: str, place: str = ""
) -> dict[str, Any]:
    """The keys of the ``dataset.yaml``: of an older one what the pull does not write.

    Args:
        folder: Where it is.
        pulled: The lists.
        suffix: Of their files.
        place: What stands before the names of all new files.
    """
    old = read_dataset_file(folder)
    runs = {plan.name: _run_entry(plan, pulled, suffix, place) for plan in pulled.plans}
    dropped = pulled.record.dropped
    kept = {name: run for name, run in (old.get("runs") or {}).items() if name not in dropped}
    return {
        "name": make_dataset_name(pulled.name, "pulled"),
        "description": f"Pulled from {pulled.connector.method}.",
        **old,
        "queries": f"{place}{QUERIES_FILE}",
        **({} if pulled.texts is None else {"documents": f"{place}{DOCUMENTS_FILE}"}),
        "runs": {**kept, **runs},
    }


def _run_entry(plan: ListPlan, pulled: PulledLists, suffix: str, place: str) -> dict[str, Any]:
    """The run as the ``dataset.yaml`` names it: its ranks are the engine's.

    Where scores fall from hit to hit, equal ones keep the order of the file. Else the rank column
    decides.
    """
    roles = [FINAL_ROLE] if plan.is_fused else list(pulled.connector.legs[plan.name].roles)
    answers = pulled.answers[plan.name].values()
    is_ordered = all(is_falling(answer) for answer in answers)
    order = {"source_ties": "file"} if is_ordered else {"rank_from": "column"}
    path = f"{place}runs/{plan.name}{suffix}"
    return {"path": path, **({"roles": roles} if roles else {}), **order}


def _experiment_text(pulled: PulledLists) -> str:
    legs = [plan.name for plan in pulled.plans if not plan.is_fused]
    systems: dict[str, Any] = {name: {"runs": [name]} for name in legs}
    has_fused = len(legs) < len(pulled.plans)
    if has_fused:
        systems[FUSED_LIST] = {"runs": [FUSED_LIST]}
    replay = pulled.connector.describe_replay(pulled.depth)
    if has_fused and replay is not None:
        name = _free_name(REPLAY, legs)
        systems[name] = {"dialect": pulled.connector.dialect, "runs": legs, **replay}
    if len(legs) > 1:
        systems[_free_name(RRF, legs)] = {"runs": legs, "fusion": {"method": "rrf"}}
    data = {
        "description": f"The legs of {pulled.connector.method} alone, and their fusions.",
        "dataset": DATASET_FILE,
        "baseline": FUSED_LIST if has_fused else next(reversed(systems)),
        "systems": systems,
    }
    if len(legs) > 1:
        data["tune"] = {"system": _free_name(RRF, legs)}
    return f"{WRITTEN_BY}{format_compact_yaml(data)}"


def replays_another_request(folder: Path, connector: Connector, depth: int) -> bool:
    """Whether an experiment that is there, and stays, has other windows or limits than the request.

    Args:
        folder: The dataset's.
        connector: The engine.
        depth: Of the pull.
    """
    wanted = connector.describe_replay(depth)
    try:
        systems = read_yaml(folder / EXPERIMENT_FILE).data["systems"]
        known = systems[_free_name(REPLAY, [*connector.legs])]
        return wanted is not None and any(
            known.get(key) != wanted.get(key) for key in ("depth", "top_k")
        )
    except (ConfigError, AttributeError, KeyError, TypeError):
        return False  # there is none, or it is the user's own


def _free_name(name: str, taken: Sequence[str]) -> str:
    return f"{name}-system" if name in taken else name
