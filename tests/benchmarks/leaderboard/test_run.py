"""Every registered method is on the leaderboard, and a run that was stopped continues."""

import csv
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from benchmarks.leaderboard import evaluate as evaluate_module
from benchmarks.leaderboard.evaluate import (
    fingerprint_row,
    load_material,
    run_collections,
)
from benchmarks.leaderboard.page import PAGE, ROWS, SHOWN, TABLES, picture_name, render_pages
from benchmarks.leaderboard.records import (
    HEAD,
    Cell,
    SystemRow,
    TuningBudget,
    cell_path,
    read_cell,
    read_head,
    write_record,
)
from benchmarks.leaderboard.results import COMPARED, collect_cells, list_results
from benchmarks.leaderboard.rows import (
    CHOSEN_SOURCE,
    FLOOR,
    Lists,
    list_rows,
)
from benchmarks.studies.leaderboard.methods import ATTACK, EXPERIMENT, write_experiment
from fusion_bench.experiment.dialect import dialects
from fusion_bench.experiment.experiment import Experiment, read_experiment
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.methods.blend import blends
from fusion_bench.methods.fuse import fusions
from tests.tiny import DATASET, make

BUDGET = TuningBudget(trials=2, folds=2, flips=39)
RENEW = "experiments/methods.yaml: run python -m benchmarks.studies.leaderboard.methods"


@cache
def methods_experiment() -> Experiment:
    return read_experiment(EXPERIMENT)[0]


def test_the_experiment_is_what_the_registries_give() -> None:
    lists = Lists.of_spec(read_spec(ATTACK)[0])
    assert EXPERIMENT.read_text(encoding="utf-8") == write_experiment("attack", lists), RENEW


def test_every_method_and_dialect_is_in_the_experiment() -> None:
    systems = methods_experiment().systems.values()
    fused = {system.fusion.method for system in systems if system.dialect is None}
    spoken = {(system.dialect, system.fusion.method) for system in systems if system.dialect}
    assert fused == set(fusions.load_all()), RENEW
    assert {system.blend.method for system in systems} == set(blends.load_all()), RENEW
    assert spoken == {
        (name, method.model_fields["method"].default)
        for name, dialect in dialects.load_all().items()
        for method in dialect.methods
    }, RENEW


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return make(tmp_path) / DATASET


class StoppedError(Exception):
    """As if the run had been killed."""


def first_rows(lists: Lists, methods: str = "all") -> tuple[SystemRow, ...]:
    assert methods == "all"
    seen: Counter[str] = Counter()
    rows = []
    for row in list_rows(lists):
        seen[row.kind] += 1
        is_wanted = row.name in {"rrf", "rrf, tuned", "convex, tuned"} or row.kind == "source"
        rows += [row] if is_wanted or row.kind == "tuned pair" or seen[row.kind] <= 2 else []
    return tuple(rows)


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate_module, "list_rows", first_rows)


def run(dataset: Path, stop_after: int | None = None) -> Counter[str]:
    def stop(_stage: str, done: int, _total: int) -> None:
        if done == stop_after:
            raise StoppedError

    return run_collections([dataset], dataset.parent / "cells", BUDGET, progress=stop)


def test_a_stopped_run_continues_and_loses_no_row(dataset: Path) -> None:
    with pytest.raises(StoppedError):
        run(dataset, stop_after=6)
    counts = run(dataset)
    folder = dataset.parent / "cells" / "tiny"
    head = read_head(folder)
    assert head is not None
    assert counts["reused"] == 6
    assert counts["reused"] + counts["computed"] + counts["skipped"] == len(head.rows)
    assert {row.kind for row in head.rows} >= {"source", "method", "engine", "tuned", "k", "floor"}
    again = run(dataset)
    assert again["reused"] == 6 + counts["computed"]
    cells = {row.name: read_cell(cell_path(folder, row.name)) for row in head.rows}
    tuned, floor, chosen = cells["rrf, tuned"], cells[FLOOR], cells[CHOSEN_SOURCE]
    assert tuned is not None
    assert floor is not None
    assert chosen is not None
    assert len(tuned.chosen) == len(chosen.chosen) == 2
    assert len(tuned.null) == len(chosen.null) == BUDGET.flips
    assert len(tuned.values["nDCG@10"]) == len(head.queries) == 3
    assert 0 < sum(floor.values["nDCG@10"]) < 3
    assert {tuple(each["runs"]) for each in chosen.chosen} <= {("a",), ("b",)}
    reranked = cells["a, reranked 20"]
    assert reranked is not None
    assert reranked.coverage == 1.0
    text = (folder / HEAD).read_text(encoding="utf-8")
    assert not re.search(r'"(q|g)[1-4]"', text)


def test_a_damaged_cell_is_computed_again(dataset: Path) -> None:
    run(dataset)
    path = cell_path(dataset.parent / "cells" / "tiny", "rrf")
    good = path.read_bytes()
    for damaged in (good[: len(good) // 2], good.replace(b"1.0", b"0.5", 1)):
        path.write_bytes(damaged)
        assert run(dataset)["computed"] == 1
        after = read_cell(path)
        assert after is not None
        assert after.values == Cell.model_validate_json(good).values


def test_the_fingerprint_is_of_data_configuration_and_budget(dataset: Path) -> None:
    row = SystemRow(name="rrf, tuned", kind="tuned", config={"runs": ["a", "b"]})
    plain = SystemRow(name="rrf", kind="method", config={"runs": ["a", "b"]})
    other = SystemRow(name="rrf", kind="method", config={"runs": ["a", "b"], "fusion": "isr"})
    data, more = load_material(dataset).fingerprint, TuningBudget(trials=3, folds=2, flips=39)
    assert fingerprint_row(data, row, BUDGET) != fingerprint_row(data, row, more)
    first = fingerprint_row(data, plain, BUDGET)
    assert first == fingerprint_row(data, plain, more)
    assert first != fingerprint_row(data, other, BUDGET)
    (dataset.parent / "qrels.txt").write_text("q1 0 d2 1\nq2 0 d3 2\nq3 0 d1 1\nq4 0 d4 1\n")
    assert fingerprint_row(load_material(dataset).fingerprint, plain, BUDGET) != first


def test_the_pages_come_from_the_stored_rows(dataset: Path) -> None:
    run(dataset)
    leaderboard = collect_cells(dataset.parent / "cells", {})
    [results] = list_results(leaderboard)
    means = {row.name: results.mean(row.name) for row in results.rows_of(*COMPARED)}
    assert results.ranks[max(means, key=means.__getitem__)] < results.ranks[FLOOR]
    assert sum(results.ranks.values()) == pytest.approx(len(means) * (len(means) + 1) / 2)
    files = render_pages(leaderboard)
    page, tables = files[PAGE].decode(), files[TABLES].decode()
    assert all(f"\n## {title}\n" in page + tables for title in ("Which k?", "Collections"))
    _, *rows = csv.reader(files[ROWS].decode().splitlines())
    assert means.keys() <= {name for row in rows for name in row[1].split(" = ")}
    listed = set(re.findall(r"^\| (.*?) \|", tables, re.MULTILINE))
    assert {row[1] for row in rows if row[0] in SHOWN} <= listed
    assert not re.search(r"\bnan\b|None", page + tables)
    assert files[picture_name("Which k?")].startswith(b"\x89PNG")
    head = results.head.model_copy(update={"budget": TuningBudget(trials=3, folds=2, flips=39)})
    write_record(dataset.parent / "cells" / "tiny" / HEAD, head)
    [stale] = list_results(collect_cells(dataset.parent / "cells", {}))
    assert set(results.cells) - set(stale.cells) == {
        row.name for row in results.rows_of("tuned", "tuned pair", "chosen")
    }
