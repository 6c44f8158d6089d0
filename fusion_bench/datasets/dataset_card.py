"""What the README.md of a published dataset states: its license, and how much is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fusion_bench.errors import DataError
from fusion_bench.io.file_bytes import read_text

FILE = "README.md"
#: The line before and after the YAML at the top of the file.
FENCE = "---"
#: Greatest part of the file that is read as YAML, in characters.
MOST_CHARACTERS = 500_000
#: Names of the parts of a collection in ``dataset_info``, as MTEB's datasets have them.
CORPUS, QUERIES, QRELS = ("corpus",), ("queries", "query"), ("default", "qrels")


class DatasetCard(NamedTuple):
    """What a card states.

    Attributes:
        license: Its terms; empty where it states none.
        rows: (name of the part, split) → rows.
    """

    license: str = ""
    rows: Mapping[tuple[str, str], int] = {}

    def count_rows(self, parts: Sequence[str], splits: Sequence[str] | None = None) -> int | None:
        """Rows of a part, in all or some splits; None = not stated."""
        counts = [
            count
            for (part, split), count in self.rows.items()
            if part in parts and (splits is None or split in splits)
        ]
        is_known = len(counts) == len(splits) if splits is not None else bool(counts)
        return sum(counts) if is_known else None

    def state_counts(self, splits: Sequence[str]) -> dict[str, int]:
        """What is stated of ``queries``, of the ``judgments`` of these splits, of ``documents``."""
        stated = {
            "queries": self.count_rows(QUERIES),
            "judgments": self.count_rows(QRELS, splits),
            "documents": self.count_rows(CORPUS),
        }
        return {what: count for what, count in stated.items() if count is not None}


def read_card(folder: Path) -> DatasetCard:
    """The card of a folder; an empty one where there is none, or its top is no YAML mapping."""
    try:
        text = read_text(folder / FILE)[:MOST_CHARACTERS]
    except DataError:
        return DatasetCard()
    before, first_fence, rest = text.partition(f"{FENCE}\n")
    top, last_fence, _ = rest.partition(f"\n{FENCE}")
    if before.strip() or not first_fence or not last_fence:
        return DatasetCard()
    try:
        data = yaml.safe_load(top)
    except (yaml.YAMLError, RecursionError, ValueError):
        return DatasetCard()
    if not isinstance(data, dict):
        return DatasetCard()
    return DatasetCard(_read_license(data.get("license")), dict(_read_rows(data)))


def _read_license(value: object) -> str:
    names = value if isinstance(value, list) else [value]
    return ", ".join(name for name in names if isinstance(name, str))


def _read_rows(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], int]]:
    """Each count of rows in ``dataset_info``; what has another form is passed over."""
    info = data.get("dataset_info")
    for part in info if isinstance(info, list) else [info]:
        splits = part.get("splits") if isinstance(part, dict) else None
        for split in splits if isinstance(splits, list) else []:
            name = split.get("name") if isinstance(split, dict) else None
            count = split.get("num_examples") if isinstance(split, dict) else None
            if isinstance(name, str) and isinstance(count, int) and not isinstance(count, bool):
                yield (str(part.get("config_name", "default")), name), count
