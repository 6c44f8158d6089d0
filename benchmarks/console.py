"""The mixing console: time from a movement of a slider to its answer.

A hundred movements of k, weights above 0, bonus and β are recorded here: a drawn walk with a seed,
each movement a small step of one control, as a hand drags it. The other movements are timed the
first time that a value is set: depth, normalizer, method, a weight of 0. An answer is everything
that the page gets, and JSON.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from benchmarks.cases import SIZES, Size, make_case
from benchmarks.collections import ATTACK, load_parity_run
from benchmarks.timing import Row
from fusion_bench.config.parameters import Value
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.evaluation.in_memory import make_dataset, make_experiment
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.load_records import load_qrels
from fusion_bench.serving.console.experiment_files import make_session
from fusion_bench.serving.console.session import ConsoleSession
from fusion_bench.serving.console.setting import Control, Setting

TITLE = "Console"
MOVEMENTS, TOY_MOVEMENTS = 100, 5
MEASURES = ["nDCG@10", "RR@10", "R@100"]
#: Parts of the paths of numbers that are dragged.
MOVED_PATHS = (".k", ".weights.", ".bonus.", ".beta")
#: The part of a range that a movement covers at most.
STEP = 0.05

NamedSession: TypeAlias = tuple[str, ConsoleSession]


def rows(rounds: int, *, toy: bool = False) -> list[Row]:  # noqa: ARG001 - one walk is enough
    """One line a collection."""
    sessions = [("toy", _open_made(SIZES["toy"]))] if toy else _open_all()
    movements = TOY_MOVEMENTS if toy else MOVEMENTS
    return [_measure(name, session, movements) for name, session in sessions]


def _measure(name: str, session: ConsoleSession, movements: int) -> Row:
    start = Setting(system=session.system)
    _answer(session, start, None)
    times, earlier = [], start
    for setting in record_movements(session, start, movements):
        times.append(_answer(session, setting, earlier))
        earlier = setting
    first = {
        title: _answer(session, Setting(system=session.system, parameters=values), start)
        for title, values in _first_times(session, start).items()
    }
    return {
        "collection": f"{name}, {len(session.evaluator.runs.queries):,} queries",
        "median ms": 1000 * statistics.median(times),
        "95 % ms": 1000 * statistics.quantiles(times, n=20)[-1],
        **{f"first {title} ms": 1000 * seconds for title, seconds in first.items()},
    }


def _answer(session: ConsoleSession, setting: Setting, earlier: Setting | None) -> float:
    """Seconds that an answer takes, as JSON."""
    started = time.perf_counter()
    json.dumps(session.answer(setting, earlier))
    return time.perf_counter() - started


def record_movements(session: ConsoleSession, start: Setting, count: int) -> list[Setting]:
    """A walk: each setting differs from the one before in one number."""
    rng = random.Random(17)  # noqa: S311 - a recorded sequence
    _, controls = session.open_setting(start)
    movable = [each for each in controls if _is_moved(each)]
    values: dict[str, Value] = {}
    settings = []
    for _ in range(count):
        control = rng.choice(movable)
        path, (low, high) = control.parameter.path, control.parameter.bounds
        now = values.get(path, control.value)
        at = control.parameter.unit_position(now) + rng.uniform(-STEP, STEP)
        at = min(max(at, 0.01), 1.0)  # a weight of 0 is another movement
        value = low * (high / low) ** at if control.parameter.log else low + at * (high - low)
        values[path] = round(value) if control.parameter.kind == "int" else value
        settings.append(Setting(system=start.system, parameters=dict(values)))
    return settings


def _is_moved(control: Control) -> bool:
    path = control.parameter.path
    is_number = control.parameter.kind != "choice" and not path.endswith(".ranks")
    return is_number and any(part in path for part in MOVED_PATHS)


def _first_times(session: ConsoleSession, start: Setting) -> Mapping[str, dict[str, Value]]:
    """Movements that need other arrays, each by its name."""
    source = session.experiment.systems[start.system].runs[-1]
    scores: dict[str, Value] = {"fusion.method": "weighted_score", "fusion.missing": "zero"}
    return {
        "depth": {"depth": session.evaluator.runs.max_rank // 2},
        "weight 0": {f"fusion.weights.{source}": 0.0},
        "method": scores,
        "normalizer": {**scores, "fusion.normalize.method": "min_max"},
    }


def _open_all() -> list[NamedSession]:
    """The built-in collection, jqara where it is at hand, and a made one."""
    data = load_dataset(ATTACK)
    sessions = [("attack", _open(data.qrels, data.runs, data.rerankers, data.queries))]
    if os.environ.get("FUSION_BENCH_PARITY_DATA"):
        sessions.append(("jqara", _open_jqara()))
    return [*sessions, (SIZES["many"].name, _open_made(SIZES["many"]))]


def _open_jqara() -> ConsoleSession:
    names = ("bm25", "bge-m3+dense", "japanese-splade-base-v1")
    runs = {name: load_parity_run("jqara", "runs", name) for name in names}
    reranker = load_parity_run("jqara", "rerank", "bge-reranker-v2-m3")
    folder = Path(os.environ["FUSION_BENCH_PARITY_DATA"]) / "jqara"
    return _open(load_qrels(folder / "qrels.txt"), runs, {reranker.name: reranker}, {})


def _open_made(size: Size) -> ConsoleSession:
    """A made collection with a rerank list; every query is shown."""
    case = make_case(replace(size, runs=size.runs + 1))
    *lists, reranker = case.runs
    runs = {run.name: run for run in lists}
    return _open(case.qrels, runs, {reranker.name: reranker}, {}, held_out=0.5)


def _open(
    qrels: Qrels,
    runs: Mapping[str, Run],
    rerankers: Mapping[str, Run],
    queries: Mapping[str, Query],
    **tune: object,
) -> ConsoleSession:
    """The console on lists at hand: rrf_v2 with a bonus, blended with the first rerank list."""
    first, *others = runs
    question = replace(runs[first], roles=frozenset({"question"}))
    lists = {first: question, **{name: runs[name] for name in others}}
    dataset = make_dataset("bench", qrels, lists, rerankers=rerankers, queries=queries)
    blend = {"method": "linear", "reranker": next(iter(rerankers)), "missing": "below"}
    fusion = {"method": "rrf_v2", "weights": {"question": 2}, "bonus": {1: 0.05, 3: 0.02}}
    systems = {
        "rrf": {"runs": [*lists]},
        "blended": {"runs": [*lists], "fusion": fusion, "blend": blend},
    }
    experiment, source = make_experiment(
        "bench",
        systems,
        dataset=dataset.name,
        measures=MEASURES,
        tune={"system": "blended", **tune},
    )
    return make_session(
        experiment, source, dataset, name=dataset.name, file=Path("bench"), system="blended"
    )
