"""The files of a pulled dataset: lists, queries, ``dataset.yaml``, the record of its making.

The file is what makes a dataset: it names all others. New files are first written whole into a
folder of their own, :data:`STAGED`. Then a ``dataset.yaml`` that names them there replaces the old
one, in one step: from now on the dataset is the new one. Last, the files get their usual names, and
the ``dataset.yaml`` follows. A process that is killed at any time leaves one dataset or the other,
and the next pull does what is left.

Format history:
    1   first version
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Final, Literal

from pydantic import Field

from fusion_bench.config.models import StrictModel
from fusion_bench.config.yaml_files import format_compact_yaml, read_yaml
from fusion_bench.data.records import FINAL_ROLE
from fusion_bench.engines.connectors import Connector
from fusion_bench.engines.options import PullOptions
from fusion_bench.engines.pull_answers import Answer
from fusion_bench.engines.pull_questions import FUSED_LIST, ListPlan
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.experiment import EXPERIMENT_FILE
from fusion_bench.io.dataset_config import make_dataset_name
from fusion_bench.io.outputs import DATASET_FILE, RECORD, write_output
from fusion_bench.io.write_run import RunRows, encode_run
from fusion_bench.util import files
from fusion_bench.util.json_text import encode_json_lines

WRITTEN_BY: Final = "# Written by: fusion-bench pull\n"
#: Folder of the new files, in the dataset's folder.
STAGED: Final = ".pull-new"


def _read_dataset_file(folder: Path) -> dict[str, Any]:
    """The keys of the ``dataset.yaml``; empty where there is none.

    Raises:
        ConfigError: It cannot be read, or is no mapping.
    """
    path = folder / DATASET_FILE
    return dict(read_yaml(path).data) if path.exists() else {}


def _write_dataset_file(folder: Path, data: Mapping[str, Any]) -> Path:
    """Write the ``dataset.yaml``, with what to do where nothing is judged.

    Raises:
        FusionBenchError: It cannot be written.
    """
    hint = ""
    if "qrels" not in data:
        command = f"fusion-bench judge {quote(str(folder))}"
        hint = f"# Pulled without judgments. '{command}' makes them; then add 'qrels: FILE'.\n"
    text = f"{WRITTEN_BY}{hint}{format_compact_yaml(dict(data))}"
    return files.write_atomic(folder / DATASET_FILE, text.encode())


def finish_replacement(folder: Path) -> None:
    """Give new files their usual names, and remove those that no ``dataset.yaml`` names.

    Raises:
        FusionBenchError: A file cannot be written; the dataset is whole all the same.
    """
    staged = folder / STAGED
    if not staged.is_dir():
        return
    data = _read_dataset_file(folder)
    final = _remove_prefix(data)
    if final != data:
        try:
            for file in sorted(path for path in staged.rglob("*") if path.is_file()):
                if file.name != RECORD:  # which the folder has of other files
                    target = folder / file.relative_to(staged)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    draft = target.with_name(f".{target.name}{files.UNFINISHED}")
                    draft.unlink(missing_ok=True)  # of a killed process
                    try:
                        os.link(file, draft)
                    except OSError:
                        shutil.copyfile(file, draft)
                    try:
                        os.replace(draft, target)  # noqa: PTH105 - atomic, as it promises
                    finally:
                        with suppress(FileNotFoundError):  # unless both were names of one file
                            draft.unlink()
        except OSError as error:
            raise files.make_write_error(folder, error) from error
        _write_dataset_file(folder, final)
    shutil.rmtree(staged, ignore_errors=True)


def _remove_prefix(value: Any) -> Any:  # noqa: ANN401 - of YAML
    """A value of the ``dataset.yaml`` with the usual names of the files."""
    if isinstance(value, Mapping):
        return {key: _remove_prefix(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_remove_prefix(each) for each in value]
    return value.removeprefix(f"{STAGED}/") if isinstance(value, str) else value


FORMAT_VERSION: Final = 1
RECORD_FILE: Final = "pull.json"


class ListRecord(StrictModel):
    """One list.

    Attributes:
        name: Its name.
        is_fused: Whether it is the engine's own fused answer.
        score: What its scores are.
        depth: Most hits per query that were asked for.
        queries: Queries that were asked.
        empty: Queries without a hit.
        hits: Hits over all queries.
        longest: Hits of the longest answer.
        surplus: Hits beyond the depth, which were dropped.
        unordered: Queries whose scores do not fall from the first hit to the last.
        rising: Queries whose scores rise from the first hit to the last.
        retries: Calls that failed before an answer came.
        latency_ms: Percentiles of the calls that were answered, each the time of one call.
    """

    name: str
    is_fused: bool
    score: str
    depth: int
    queries: int
    empty: int
    hits: int
    longest: int
    surplus: int
    unordered: int
    rising: int
    retries: int
    latency_ms: dict[str, float]


class PullRecord(StrictModel):
    """Record of a pull.

    Attributes:
        format: Always ``fusion-bench-pull``.
        format_version: See the history in this module.
        created: When, UTC, ISO 8601.
        engine: Name of the connector.
        settings: What the lists depend on, without keys.
        fingerprint: Of the index, as the engine states it.
        is_changed: Whether the index changed while it was asked.
        queries: Queries that were pulled.
        asked: Questions that the last run asked; the others were stored by runs before it.
        lists: One record a list.
        documents: Documents whose texts were pulled; None = none were asked for.
        without_text: Documents of which the engine gave no text.
        all_texts: Whether these are all documents of the index, and not those of the lists alone.
        failed: Query → why it was left out.
        dropped: Lists that the pull before this one made, and this one did not: the dataset names
            them no more.
        is_replay_outdated: Whether the experiment of an earlier pull, which stays, replays another
            window or limit.
    """

    format: Literal["fusion-bench-pull"] = "fusion-bench-pull"
    format_version: Literal[1] = FORMAT_VERSION
    created: str
    engine: str
    settings: dict[str, Any]
    fingerprint: dict[str, Any]
    is_changed: bool
    queries: int
    asked: int
    lists: tuple[ListRecord, ...]
    documents: int | None = None
    without_text: int = 0
    all_texts: bool = False
    failed: dict[str, str] = Field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    is_replay_outdated: bool = False

    @property
    def coverage(self) -> str | None:
        """Share of the index whose texts the dataset has; None = all, or no texts."""
        size = self.fingerprint.get("documents")
        if self.documents is None or self.all_texts or size == self.documents:
            return None
        known = f"{self.documents:,} documents, which the lists returned"
        if not isinstance(size, int) or size < self.documents:
            return f"{known} (their share of the index is unknown)"
        return f"{known}, of {size:,} in the index ({self.documents / size:.0%})"

    @property
    def is_degraded(self) -> bool:
        """Whether a query was left out, or the index changed meanwhile."""
        return bool(self.failed) or self.is_changed


def read_record(folder: Path) -> PullRecord | None:
    """The record of the pull into a folder; None where none can be read."""
    try:
        return PullRecord.model_validate_json(files.read_regular(folder / RECORD_FILE))
    except (OSError, ValueError):
        return None


QUERIES_FILE: Final = "queries.jsonl"
DOCUMENTS_FILE: Final = "documents.jsonl"
#: Name of the system that replays the engine's own fusion.
REPLAY: Final = "replay"
RRF: Final = "rrf"


@dataclass(frozen=True)
class PulledLists:
    """Lists, queries and texts of a pull.

    Attributes:
        connector: The engine.
        options: What is pulled of it.
        plans: The lists that hold a document.
        answers: List → query id → answer.
        queries: The queries as their file has them.
        texts: Document id → text; None = not asked for.
        record: How it was pulled.
    """

    connector: Connector
    options: PullOptions
    plans: Sequence[ListPlan]
    answers: Mapping[str, Mapping[str, Answer]]
    queries: Sequence[Mapping[str, Any]]
    texts: Mapping[str, str] | None
    record: PullRecord


def write_folder(folder: Path, pulled: PulledLists) -> list[Path]:
    """Write the dataset, and an experiment; of an older pull's dataset its judgments stay.

    An older dataset stays readable until the new one is whole.

    Raises:
        FusionBenchError: The folder cannot be written to.
    """
    rankings = {
        name: {
            query: [(hit.document, hit.score) for hit in each.hits] for query, each in of.items()
        }
        for name, of in pulled.answers.items()
    }
    ids = {str(query["id"]) for query in pulled.queries}
    ids |= {hit[0] for lists in rankings.values() for hits in lists.values() for hit in hits}
    # A TREC file cannot hold an id with blanks.
    suffix = ".jsonl.gz" if any(text.split() != [text] for text in ids) else ".trec.gz"
    lists = {
        f"runs/{plan.name}{suffix}": RunRows.from_rankings(plan.name, rankings[plan.name])
        for plan in pulled.plans
    }
    contents = {QUERIES_FILE: encode_json_lines(pulled.queries)}
    if pulled.texts is not None:
        texts = ({"id": name, "text": text} for name, text in sorted(pulled.texts.items()))
        contents[DOCUMENTS_FILE] = encode_json_lines(texts)
    contents[RECORD_FILE] = f"{pulled.record.model_dump_json(indent=1)}\n".encode()
    if not (folder / EXPERIMENT_FILE).exists():
        contents[EXPERIMENT_FILE] = _write_experiment(pulled).encode()
    if (folder / DATASET_FILE).exists():
        finish_replacement(folder)
        _write_files(folder / STAGED, lists, contents)
        _write_dataset_file(folder, _dataset_keys(folder, pulled, suffix, f"{STAGED}/"))
        finish_replacement(folder)
    else:
        with files.remove_on_failure() as new:
            names = (*lists, *contents, DATASET_FILE)
            new += [path for name in names if not (path := folder / name).exists()]
            _write_files(folder, lists, contents)
            _write_dataset_file(folder, _dataset_keys(folder, pulled, suffix))
    return [folder / name for name in (*lists, *contents, DATASET_FILE)]


def _write_experiment(pulled: PulledLists) -> str:
    """Write an experiment on the legs alone and their fusions, as YAML."""
    sources = [plan.name for plan in pulled.plans if not plan.is_fused]
    systems: dict[str, Any] = {name: {"runs": [name]} for name in sources}
    has_fused = len(sources) < len(pulled.plans)
    if has_fused:
        systems[FUSED_LIST] = {"runs": [FUSED_LIST]}
    connector = pulled.connector
    replay = connector.describe_replay(pulled.options.depth)
    if has_fused and replay is not None:
        name = _free_name(REPLAY, sources)
        systems[name] = {"dialect": connector.dialect, "runs": sources, **replay}
    if len(sources) > 1:
        systems[_free_name(RRF, sources)] = {"runs": sources, "fusion": {"method": "rrf"}}
    data = {
        "description": f"The legs of {connector.method} alone, and their fusions.",
        "dataset": DATASET_FILE,
        "baseline": FUSED_LIST if has_fused else next(reversed(systems)),
        "systems": systems,
    }
    if len(sources) > 1:
        data["tune"] = {"system": _free_name(RRF, sources)}
    return f"{WRITTEN_BY}{format_compact_yaml(data)}"


def _write_files(folder: Path, lists: Mapping[str, RunRows], contents: Mapping[str, bytes]) -> None:
    for name, rows in lists.items():
        write_output(folder / name, encode_run(folder / name, rows))
    for name, data in contents.items():
        write_output(folder / name, data)


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
    old, options = _read_dataset_file(folder), pulled.options
    unordered = {each.name for each in pulled.record.lists if each.unordered}
    runs = {}
    for plan in pulled.plans:
        roles = [FINAL_ROLE] if plan.is_fused else list(pulled.connector.legs[plan.name].roles)
        # The ranks are the engine's. If scores fall, equal ones keep the order of the file.
        order = {"rank_from": "column"} if plan.name in unordered else {"source_ties": "file"}
        path = {"path": f"{place}runs/{plan.name}{suffix}"}
        runs[plan.name] = {**path, **({"roles": roles} if roles else {}), **order}
    dropped = pulled.record.dropped
    kept = {name: run for name, run in (old.get("runs") or {}).items() if name not in dropped}
    return {
        "name": make_dataset_name(options.name or files.resolve_path(options.out).name, "pulled"),
        "description": f"Pulled from {pulled.connector.method}.",
        **old,
        "queries": f"{place}{QUERIES_FILE}",
        **({} if pulled.texts is None else {"documents": f"{place}{DOCUMENTS_FILE}"}),
        "runs": {**kept, **runs},
    }


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
