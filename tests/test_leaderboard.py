"""Every registered method is on the leaderboard, and a run that was stopped continues."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from benchmarks.studies.leaderboard.cells import (
    HEAD,
    Budget,
    Cell,
    Row,
    cell_path,
    read_cell,
    read_head,
    write_record,
)
from benchmarks.studies.leaderboard.evaluate import evaluate_row, fingerprint_row, load_material
from benchmarks.studies.leaderboard.methods import (
    ATTACK,
    EXPERIMENT,
    Lists,
    list_policies,
    write_experiment,
)
from benchmarks.studies.leaderboard.page import PICTURE, QUESTIONS, write_page
from benchmarks.studies.leaderboard.results import (
    BEST_SOURCE,
    COMPARED,
    ORACLES,
    WORST_SOURCE,
    read_results,
)
from benchmarks.studies.leaderboard.rows import FLOOR, list_rows
from benchmarks.studies.leaderboard.run import run_collections
from fusion_bench.experiment.dialect import dialects
from fusion_bench.experiment.experiment import Experiment, read_experiment
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.methods.blend import blends
from fusion_bench.methods.fuse import fusions
from tests.tiny import FILES

BUDGET = Budget(trials=2, folds=2, flips=39)
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
    chosen = [getattr(system, "policy", None) for system in systems]
    policies = {policy.method for policy in chosen if policy is not None}
    assert fused == set(fusions.load_all()), RENEW
    assert {system.blend.method for system in systems} == set(blends.load_all()), RENEW
    assert policies == set(list_policies()), RENEW
    assert spoken == {
        (name, method.model_fields["method"].default)
        for name, dialect in dialects.load_all().items()
        for method in dialect.methods
    }, RENEW


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "datasets" / "tiny" / "dataset.yaml"


class StoppedError(Exception):
    """As if the run had been killed."""


def run(dataset: Path, stop_after: int | None = None) -> tuple[Counter[str], list[str]]:
    """A run over the first rows of each kind: its counts, and the rows that it computed."""
    computed: list[str] = []

    def report(_collection: str, cell: Cell, is_new: bool) -> None:
        computed.extend([cell.row.name] if is_new else [])
        if len(computed) == stop_after:
            raise StoppedError

    folder = dataset.parent.parent.parent / "cells"
    counts = run_collections([("tiny", dataset)], folder, BUDGET, rows=first_rows, report=report)
    return counts, computed


def first_rows(lists: Lists) -> tuple[Row, ...]:
    """One row of each kind, every source, and what the page compares."""
    seen: Counter[str] = Counter()
    rows = []
    for row in list_rows(lists):
        seen[row.kind] += 1
        is_wanted = (
            row.name in {"rrf", "rrf, tuned", "convex, tuned"}
            or row.kind == "source"
            or seen[row.kind] == 1
        )
        rows += [row] if is_wanted else []
    return tuple(rows)


def test_a_stopped_run_continues_and_loses_no_row(dataset: Path) -> None:
    with pytest.raises(StoppedError):
        run(dataset, stop_after=6)
    counts, second = run(dataset)
    folder = dataset.parent.parent.parent / "cells" / "tiny"
    head = read_head(folder)
    assert head is not None
    assert counts["reused"] == 6
    assert counts["reused"] + counts["computed"] + counts["skipped"] == len(head.rows)
    assert {row.kind for row in head.rows} >= {"source", "method", "engine", "tuned", "k", "floor"}
    cells = {row.name: read_cell(cell_path(folder, row.name)) for row in head.rows}
    again, third = run(dataset)
    assert set(third) <= {name for name, cell in cells.items() if cell and cell.skipped}
    assert again["reused"] == 6 + counts["computed"]
    tuned, floor = cells["rrf, tuned"], cells[FLOOR]
    assert tuned is not None
    assert floor is not None
    assert len(tuned.chosen) == 2
    assert len(tuned.null) == BUDGET.flips
    assert len(tuned.values["nDCG@10"]) == len(head.queries) == 3
    assert 0 < sum(floor.values["nDCG@10"]) < 3
    assert "rrf, tuned" in second


def test_a_damaged_cell_is_computed_again(dataset: Path) -> None:
    run(dataset)
    path = cell_path(dataset.parent.parent.parent / "cells" / "tiny", "rrf")
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2])
    _, computed = run(dataset)
    assert "rrf" in computed
    before, after = Cell.model_validate_json(good), read_cell(path)
    assert after is not None
    assert after.values == before.values


def test_the_fingerprint_is_of_data_configuration_and_budget(dataset: Path) -> None:
    row = Row(name="rrf, tuned", kind="tuned", config={"runs": ["a", "b"]})
    plain = Row(name="rrf", kind="method", config={"runs": ["a", "b"]})
    other = Row(name="rrf", kind="method", config={"runs": ["a", "b"], "fusion": "isr"})
    data, more = load_material(dataset).fingerprint, Budget(trials=3, folds=2, flips=39)
    assert fingerprint_row(data, row, BUDGET) != fingerprint_row(data, row, more)
    first = fingerprint_row(data, plain, BUDGET)
    assert first == fingerprint_row(data, plain, more)
    assert first != fingerprint_row(data, other, BUDGET)
    (dataset.parent / "qrels.txt").write_text("q1 0 d2 1\nq2 0 d3 2\nq3 0 d1 1\nq4 0 d4 1\n")
    assert fingerprint_row(load_material(dataset).fingerprint, plain, BUDGET) != first


def test_a_tuned_row_of_which_no_parameters_can_be_evaluated_is_skipped(dataset: Path) -> None:
    normalize = {"method": "theoretical_min_max", "lo": 100.0}  # above every score
    fusion = {"method": "weighted_score", "normalize": normalize}
    row = Row(name="high lo, tuned", kind="tuned", config={"runs": ["a", "b"], "fusion": fusion})
    cell = evaluate_row(load_material(dataset), row, BUDGET)
    assert "100" in cell.skipped
    assert not cell.values


def test_the_page_and_its_picture_come_from_the_stored_rows(dataset: Path, tmp_path: Path) -> None:
    run(dataset)
    [results] = read_results(dataset.parent.parent.parent / "cells")
    means = {row.name: results.mean(row.name) or 0.0 for row in results.rows_of(*COMPARED)}
    assert results.ranks[max(means, key=means.__getitem__)] < results.ranks[FLOOR]
    assert sum(results.ranks.values()) == pytest.approx(len(means) * (len(means) + 1) / 2)
    difference = results.difference("a", "rrf")
    assert difference is not None
    assert difference.mean == pytest.approx(means["a"] - means["rrf"])
    page = write_page([results], tmp_path / "page").read_text(encoding="utf-8")
    assert all(f"## {question}" in page for question in QUESTIONS)
    assert all(f"\n| {name} | " in page for name in (*ORACLES, *means) if name not in {"a", "b"})
    assert {results.resolve(name) for name in (BEST_SOURCE, WORST_SOURCE)} == {"a", "b"}
    assert not re.search(r"\bnan\b|None", page)
    head = results.head.model_copy(update={"budget": Budget(trials=3, folds=2, flips=39)})
    write_record(dataset.parent.parent.parent / "cells" / "tiny" / HEAD, head)
    [stale] = read_results(dataset.parent.parent.parent / "cells")
    assert set(results.cells) - set(stale.cells) == {
        row.name for row in results.rows_of("tuned", "tuned pair")
    }
    assert (tmp_path / "page" / PICTURE).read_bytes().startswith(b"\x89PNG")
