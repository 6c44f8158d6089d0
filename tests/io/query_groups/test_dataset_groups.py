"""``groups`` of a dataset.yaml: automatic, declared, or a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fusion_bench.errors import AlignmentError, ConfigError, DataError
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.query_groups.group_file import read_groups

SIZE = 12


def write_dataset(folder: Path, extra: str = "", copies: int = 2) -> Path:
    """Twelve queries; the first ``copies`` of them have the same text, in two declared groups."""
    lines, qrels = [], []
    runs: dict[str, list[str]] = {"a": [], "b": []}
    for i in range(SIZE):
        text = "The same question?" if i < copies else f"{'abcdefghijkl'[i] * 9} zzz{i}"
        lines.append(json.dumps({"id": f"q{i}", "text": text}))
        qrels.append(f"q{i} 0 d{i} 1")
        for name, rows in runs.items():
            rows += [f"q{i} Q0 d{i + j} {j + 1} {9 - j} {name}" for j in range(3)]
    folder.mkdir(exist_ok=True)
    (folder / "queries.jsonl").write_text("\n".join(lines))
    (folder / "qrels.txt").write_text("\n".join(qrels))
    for name, rows in runs.items():
        (folder / f"{name}.trec").write_text("\n".join(rows))
    path = folder / "dataset.yaml"
    path.write_text(
        "name: tiny\nqrels: qrels.txt\nqueries: queries.jsonl\n"
        f"runs: {{a: {{path: a.trec}}, b: {{path: b.trec}}}}\n{extra}\n"
    )
    return path


def groups_of(dataset: Dataset) -> dict[str, str | None]:
    return {name: query.group for name, query in dataset.queries.items() if query.group}


@pytest.mark.parametrize("runs", [None, ["a"], []])
def test_auto_joins_copies_whatever_runs_are_read(tmp_path: Path, runs: list[str] | None) -> None:
    path = write_dataset(tmp_path, "groups: auto")
    dataset = load_dataset(path, runs=runs)
    assert groups_of(dataset) == {"q0": "q0", "q1": "q0"}
    if runs is None:
        aligned = dataset.aligned(["a"])
        assert aligned.groups[:4] == ("q0", "q0", "q10", "q11")
        plain = load_dataset(write_dataset(tmp_path / "plain"))
        assert set(dataset.digests()) - set(plain.digests()) == {"queries.group"}


def test_auto_refuses_a_group_over_a_fifth(tmp_path: Path) -> None:
    path = write_dataset(tmp_path, "groups: auto", copies=4)
    with pytest.raises(ConfigError, match=r"dataset.yaml:5: groups: .* 4 of 12 queries"):
        load_dataset(path)


def test_declared_groups_are_kept_as_they_are(tmp_path: Path) -> None:
    assert groups_of(load_dataset(write_dataset(tmp_path, "groups: declared"))) == {}


def test_a_file_of_groups(tmp_path: Path) -> None:
    path = write_dataset(tmp_path, "groups: groups.jsonl")
    file = tmp_path / "groups.jsonl"
    with pytest.raises(DataError, match="no such file"):
        load_dataset(path)
    file.write_text('{"id": "q3", "group": "g"}\n{"id": "q4", "group": "g", "reason": "same text"}')
    assert groups_of(load_dataset(path)) == {"q3": "g", "q4": "g"}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ('{"id": "q1"}', DataError, ":1: 'group' is missing"),
        ('{"group": "g"}', DataError, ":1: 'id' is missing"),
        ('{"id": "q1", "group": 1.5}', DataError, "group must be text"),
        ('{"id": "q1", "group": "g"}\n{"id": "q1", "group": "h"}', DataError, "stands twice"),
        ('{"id": "z", "group": "g"}', AlignmentError, "no judged query"),
    ],
)
def test_files_of_groups_that_break_a_rule(
    tmp_path: Path, text: str, error: type[Exception], message: str
) -> None:
    dataset = load_dataset(write_dataset(tmp_path))
    file = tmp_path / "groups.jsonl"
    file.write_text(text)
    with pytest.raises(error, match=message):
        read_groups(file, dataset.qrels)
