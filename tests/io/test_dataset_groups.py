"""``groups`` of a dataset.yaml: automatic, declared, or a file."""

import json
from pathlib import Path

import pytest

from fusion_bench.errors import AlignmentError, ConfigError, DataError
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.query_groups import read_groups

SIZE = 12


def write_dataset(folder: Path, extra: str = "", copies: int = 2, queries: int = SIZE) -> Path:
    """Queries of which the first ``copies`` have the same text, each its own group."""
    lines, qrels = [], []
    runs: dict[str, list[str]] = {"a": [], "b": []}
    for i in range(queries):
        text = "The same question?" if i < copies else f"{chr(97 + i % 26) * 9} zzz{i}"
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
        plain = load_dataset(write_dataset(tmp_path / "plain", "groups: none"))
        assert dataset.digests() == plain.digests()  # found groups follow from the other parts
        assert dataset.fingerprint != plain.fingerprint
        assert dataset.found_groups == {"q0": "q0", "q1": "q0"}


def test_auto_refuses_a_group_over_a_fifth(tmp_path: Path) -> None:
    path = write_dataset(tmp_path, "groups: auto", copies=4)
    with pytest.raises(ConfigError, match=r"dataset.yaml:5: groups:.*4.*12"):
        load_dataset(path)


@pytest.mark.parametrize("word", ["none", "declared"])
def test_nothing_is_searched_where_groups_are_refused(tmp_path: Path, word: str) -> None:
    assert groups_of(load_dataset(write_dataset(tmp_path, f"groups: {word}", queries=40))) == {}


@pytest.mark.parametrize("key", ["", "groups: identical"])
@pytest.mark.parametrize(
    ("queries", "copies", "joined"),
    [
        (21, 2, 2),
        (20, 2, 0),  # 19 groups would remain
        (40, 8, 8),
        (40, 9, 0),  # more than a fifth in one group
    ],
)
def test_queries_of_equal_texts_are_one_group_where_groups_remain(
    tmp_path: Path, key: str, queries: int, copies: int, joined: int
) -> None:
    path = write_dataset(tmp_path, key, copies=copies, queries=queries)
    assert groups_of(load_dataset(path)) == {f"q{i}": "q0" for i in range(joined)}


def test_half_as_many_groups_as_declared_must_remain(tmp_path: Path) -> None:
    path = write_dataset(tmp_path, queries=60)
    lines = [json.loads(line) for line in (tmp_path / "queries.jsonl").read_text().splitlines()]
    for size, joined in ((2, 60), (3, 0)):  # 30 and 20 groups of 60 queries
        texts = [{**line, "text": f"text {i // size}"} for i, line in enumerate(lines)]
        (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, texts)))
        assert len(groups_of(load_dataset(path))) == joined


def test_groups_that_are_given_stand_for_those_that_are_found(tmp_path: Path) -> None:
    path = write_dataset(tmp_path, queries=40)
    file = tmp_path / "queries.jsonl"
    split = file.read_text().replace('"q0"', '"q0", "split": "dev"')
    file.write_text(split.replace('"q1"', '"q1", "split": "test"'))
    assert groups_of(load_dataset(path)) == {}
    dataset = load_dataset(write_dataset(tmp_path, queries=40), groups={"q5": "g", "q6": "g"})
    assert groups_of(dataset) == {"q5": "g", "q6": "g"} == dataset.found_groups


@pytest.mark.parametrize(("others", "joined"), [(True, {}), (False, {"q3": "q2", "q2": "q2"})])
def test_equal_lists_are_those_of_all_runs_whatever_is_read(
    tmp_path: Path, others: bool, joined: dict[str, str]
) -> None:
    path = write_dataset(tmp_path, copies=0, queries=40)
    for name in ("a", "b"):
        file = tmp_path / f"{name}.trec"
        rows = [row for row in file.read_text().splitlines() if row.split()[0] not in {"q2", "q3"}]
        unlike = others and name == "b"
        for query in ("q2", "q3"):
            place = query if unlike else "same"
            rows += [f"{query} Q0 {place}-{i} {i + 1} {9 - i} {name}" for i in range(5)]
        file.write_text("\n".join(rows))
    assert groups_of(load_dataset(path, runs=["a"])) == joined


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
        ('{"id": "q1", "group": "g"}\n{"id": "q1", "group": "h"}', DataError, "appears twice"),
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
