"""``where`` and ``slices``: which queries count, and how the report breaks them down."""

from pathlib import Path

import numpy as np
import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.report.evaluation_tables import slice_tables
from fusion_bench.report.page import Table
from tests import tiny
from tests.tiny import EXPERIMENT, edit

QUERIES = """\
{"id": "q1", "type": "local", "intent": "meta", "language": "en", "level": 1, "tags": ["a"]}
{"id": "q2", "type": "local", "intent": "rules", "language": "ja", "level": 2}
{"id": "q3", "type": "global", "intent": "meta", "language": "ja"}
{"id": "q4", "type": "global", "language": "ja", "level": 1}
"""


def report(root: Path, keys: str = "", **options: object) -> Report:
    tiny.make(root, queries=QUERIES)
    edit(root, EXPERIMENT, "dataset: tiny\n", f"dataset: tiny\n{keys}")
    experiment, source = read_experiment(root / EXPERIMENT)
    folders = [root / "datasets"]
    return run_experiment(experiment, source, folders=folders, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("where", "queries"),
    [
        ("{language: ja}", ("q2", "q3", "q4")),
        ("{language: [en, ja]}", ("q1", "q2", "q3", "q4")),
        ("{language: ja, intent: meta}", ("q3",)),
        ("{level: 1}", ("q1", "q4")),
        ("{type: local}", ("q1", "q2")),
    ],
)
def test_only_the_queries_with_these_values(
    where: str, queries: tuple[str, ...], tmp_path: Path
) -> None:
    found = report(tmp_path, f"where: {where}\n").collections[0]
    assert found.queries == queries
    assert all(f"{field}:" in where for field in found.where)


def test_conditions_of_the_command_join_those_of_the_file(tmp_path: Path) -> None:
    found = report(tmp_path, "where: {language: ja}\n", where={"intent": ("meta", "rules")})
    assert found.collections[0].queries == ("q2", "q3")
    assert found.collections[0].where == {"language": ("ja",), "intent": ("meta", "rules")}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("where: {langage: ja}\n", r"e\.yaml:2: where\.langage: tiny: unknown field.*'language'"),
        ("where: {tags: a}\n", "of query 'q1' holds"),
        ("where: {language: fr}\n", "unknown language 'fr'.*known: en, ja"),
        ("where: {language: en, intent: rules}\n", "no judged query of"),
        ("where: {id: q1}\n", "'id' is different for"),
        ("where: {type: local}\nquery_type: local\n", "where.type mean the"),
        ("slices: [langage]\n", r"e\.yaml:2: slices: tiny: unknown field"),
        ("slices: [tags]\n", "a list or an"),
        ("slices: [type, type]\n", "is listed twice"),
        ("slices: [text]\n", "'text' is different"),
    ],
)
def test_fields_and_values_that_are_not_there(keys: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        report(tmp_path, keys)


def test_a_field_of_many_values_is_no_slice(tmp_path: Path) -> None:
    tiny.make(tmp_path)
    edit(tmp_path, EXPERIMENT, "dataset: tiny\n", "dataset: tiny\nslices: [page]\n")
    folder = tmp_path / "datasets/tiny"
    (folder / "queries.jsonl").write_text(
        "".join(f'{{"id": "q{i}", "page": {i}}}\n' for i in range(60)), encoding="utf-8"
    )
    (folder / "qrels.txt").write_text(
        "".join(f"q{i} 0 d1 1\n" for i in range(60)), encoding="utf-8"
    )
    experiment, source = read_experiment(tmp_path / EXPERIMENT)
    with pytest.raises(ConfigError, match="'page' has 60 "):
        run_experiment(experiment, source, folders=[tmp_path / "datasets"])


def tables(found: Report) -> dict[str, Table]:
    return {table.columns[0].header: table for table in slice_tables(found, found.collections[0])}


def test_a_table_for_each_field(tmp_path: Path) -> None:
    found = report(tmp_path, "slices: [type, intent, language]\n")
    collection = found.collections[0]
    assert collection.slices == {
        "intent": ("meta", "rules", "meta", None),
        "language": ("en", "ja", "ja", "ja"),
    }
    by_field = tables(found)
    assert [*by_field] == ["type", "intent", "language"]
    values = np.array(collection.system("one").measures["RR@10"].values, dtype=np.float64)
    for field, table in by_field.items():
        means = {
            row.cells[0]: (row.cells[2], row.cells[3])
            for row in table.rows
            if row.cells[1] == "one"
        }
        column = collection.slice_values(field)
        expected = {
            f"(no {field})" if value is None else value: (
                str(column.count(value)),
                f"{np.mean([v for v, c in zip(values, column, strict=True) if c == value]):.4f}",
            )
            for value in set(column)
        }
        assert means == expected


def test_types_are_the_only_slices_by_default(tmp_path: Path) -> None:
    found = report(tmp_path)
    assert [*tables(found)] == ["type"]
    assert found.collections[0].slices == {}
    assert [*tables(report(tmp_path / "none", "slices: []\n"))] == []
