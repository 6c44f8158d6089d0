"""The files of a dataset that was made of a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fusion_bench.io.file_bytes import format_suffix
from fusion_bench.io.specs.dataset_name import make_dataset_name
from fusion_bench.io.write_run import RunRows, write_run
from fusion_bench.logs.lists_of_log import PRODUCTION, RERANK, STRATEGIES
from fusion_bench.logs.logged_queries import LoggedQuery
from fusion_bench.logs.query_facts import describe_query
from fusion_bench.logs.replay import REPLAY
from fusion_bench.schema import SearchResultItem
from fusion_bench.util.files.atomic_files import write_atomic
from fusion_bench.util.files.new_files import remove_on_failure, require_free
from fusion_bench.util.files.regular_files import read_regular
from fusion_bench.util.json_lines import encode_json_lines
from fusion_bench.util.yaml_text import format_compact_yaml

DATASET_FILE: Final = "dataset.yaml"
EXPERIMENT_FILE: Final = "experiment.yaml"
WRITTEN_BY: Final = "# Written by: fusion-bench dataset from-logs\n"
NO_QRELS: Final = """\
# Missing: the judgments. A log says what was returned, and not what was relevant. Make them with
# 'fusion-bench judge' on this folder; or write 'qrels: qrels.txt' below, and that file with one
# 'QUERY 0 DOCUMENT GRADE' a line; or run this command again with --qrels FILE and another --out
# folder. Until then eval, tune and gate refuse the dataset.
"""


def check_free(folder: Path) -> None:
    """Refuse a folder in which something would be overwritten, before the work begins.

    Raises:
        ConfigError: It is a file, or holds a dataset or an experiment.
    """
    require_free(folder, (DATASET_FILE, EXPERIMENT_FILE))


def write_folder(
    folder: Path,
    name: str,
    queries: Sequence[LoggedQuery],
    runs: Mapping[str, RunRows],
    rerank: RunRows | None,
    replay: Mapping[str, Any],
    qrels: Path | None,
) -> list[Path]:
    """Write the dataset and the experiment.

    Args:
        folder: Where to; created if missing.
        name: The dataset's name; characters that it cannot have become dashes.
        queries: The queries.
        runs: The lists by name.
        rerank: The rerank list.
        replay: The system that replays production.
        qrels: Judgments to copy; None = the dataset says that they are missing.

    Raises:
        FusionBenchError: The folder cannot be written to.
    """
    judgments = None if qrels is None else f"qrels{_suffixes(qrels)}"
    lists = {folder / f"runs/{key}.jsonl": rows for key, rows in runs.items()}
    if rerank is not None:
        lists[folder / f"{RERANK}/{RERANK}.jsonl"] = rerank
    facts = (describe_query(query) for query in queries)
    texts = {
        DATASET_FILE: _dataset_text(name, judgments, runs, rerank),
        EXPERIMENT_FILE: _experiment_text(runs, replay),
    }
    contents = {key: text.encode() for key, text in texts.items()}
    contents["queries.jsonl"] = encode_json_lines(facts)
    contents["documents.jsonl"] = encode_json_lines(_describe_documents(queries))
    if qrels is not None and judgments is not None:
        contents[judgments] = read_regular(qrels)
    require_free(folder, (*contents, *(str(path.relative_to(folder)) for path in lists)))
    with remove_on_failure() as new:
        new += [*lists, *map(folder.joinpath, contents)]
        files = [write_run(path, rows) for path, rows in lists.items()]
        written = [write_atomic(folder / key, data) for key, data in contents.items()]
        return [*written, *files]


def _suffixes(path: Path) -> str:
    packed = ".gz" if path.suffix.lower() == ".gz" else ""
    return f"{format_suffix(path)}{packed}"


def _dataset_text(
    name: str, qrels: str | None, runs: Mapping[str, RunRows], rerank: RunRows | None
) -> str:
    lists: dict[str, Any] = {}
    for key in runs:
        lists[key] = {"path": f"runs/{key}.jsonl"}
        lists[key] |= {"roles": [key]} if key in STRATEGIES else {}
    lists[PRODUCTION]["rank_from"] = "column"
    data: dict[str, Any] = {
        "name": make_dataset_name(name, "log"),
        "description": "Logged searches.",
        **({} if qrels is None else {"qrels": qrels}),
        "queries": "queries.jsonl",
        "documents": "documents.jsonl",
        "runs": lists,
    }
    if rerank is not None:
        data["rerank"] = {RERANK: {"path": f"{RERANK}/{RERANK}.jsonl", "score_space": "unit"}}
    return f"{WRITTEN_BY}{NO_QRELS if qrels is None else ''}{format_compact_yaml(data)}"


def _experiment_text(runs: Mapping[str, RunRows], replay: Mapping[str, Any]) -> str:
    single = {key: {"runs": [key]} for key in runs}
    data = {
        "description": (
            "Production as it was logged, and the system that replays it. A comparison with the "
            "best single source counts 'production', the logged final list, as a source."
        ),
        "dataset": DATASET_FILE,
        "ties": "first_seen",
        "baseline": PRODUCTION,
        "systems": {PRODUCTION: single.pop(PRODUCTION), REPLAY: dict(replay), **single},
        "tune": {"system": REPLAY},
    }
    return f"{WRITTEN_BY}{format_compact_yaml(data)}"


def _describe_documents(queries: Sequence[LoggedQuery]) -> Iterable[dict[str, Any]]:
    """Each document with what all results say of it; a later result's value replaces an earlier.

    The keys keep the order in which they first appear: ``{...earlier, ...later}`` of JavaScript.
    """
    documents: dict[str, dict[str, Any]] = {}
    for query in queries:
        for item in query.items:
            documents[item.id] = documents.get(item.id, {}) | _describe_document(item)
    return documents.values()


def _describe_document(item: SearchResultItem) -> dict[str, Any]:
    content = item.content.model_dump(mode="json", by_alias=True, exclude_none=True)
    sources = item.sources.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"id": item.id, **content, "type": str(item.type), **sources}
