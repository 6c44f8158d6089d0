from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import numpy as np
import optuna
import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.experiment.settings import SearchSettings
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import SearchResult, Trial, run_search
from fusion_bench.tune.shared_study import export_search, search_shared_study
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, problem, system

RUNS = aligned(24)
KEEP = np.ones(24, dtype=bool)
OBJECTIVE = problem(system({"method": "rrf_v2"}, {**BLEND, "method": "position_aware"}), runs=RUNS)
SETTINGS = SearchSettings(trials=10, batch=4)


def test_an_exported_study_reads_as_one_of_optunas_own(sqlite: str) -> None:
    study = run_search(OBJECTIVE, KEEP, SETTINGS)
    assert export_search(study, OBJECTIVE, sqlite, "mine") == 10
    found = optuna.load_study(study_name="mine", storage=sqlite)
    assert found.best_value == study.best_trial.value
    assert found.best_params == study.best_trial.params
    assert found.direction == optuna.study.StudyDirection.MAXIMIZE
    other = run_search(OBJECTIVE, KEEP, SETTINGS.model_copy(update={"seed": 8}))
    with pytest.raises(ConfigError, match="another study 'mine'"):
        export_search(other, OBJECTIVE, sqlite, "mine")


def test_an_export_that_was_interrupted_goes_on(sqlite: str) -> None:
    one, study = everything()
    export_search(replace(study, trials=study.trials[:5]), one, sqlite, "mine")
    for _ in range(2):
        assert export_search(study, one, sqlite, "mine") == len(study.trials)
        stored = optuna.load_study(study_name="mine", storage=sqlite).get_trials()
        assert [t.user_attrs["number"] for t in stored] == [t.number for t in study.trials]


def everything() -> tuple[TuningObjective, SearchResult]:
    """Conditions, a default outside the space, and trials that could not be computed."""
    ranges = {
        "fusion.method": {"choices": ["rrf", "weighted_score"]},
        "fusion.k": {"low": 1, "high": 9, "when": {"fusion.method": "rrf"}},
        "fusion.weights.bad": {"low": 0, "high": 2, "when": {"fusion.method": "rrf"}},
        "blend.method": {"choices": ["none", "linear"]},
        "blend.min_score": {"low": 0, "high": 0.5, "when": {"blend.method": "linear"}},
    }
    one = problem(system({"method": "rrf"}, BLEND), ranges, runs=RUNS)
    found = run_search(one, KEEP, SearchSettings(trials=12, batch=4))
    failed = Trial(len(found.trials), found.trials[5].params, float("nan"), "sampler")
    refused = Trial(
        failed.number + 1, {**one.default_params, "fusion.k": -5.0}, float("nan"), "sampler"
    )
    return one, replace(found, trials=(*found.trials, failed, refused))


def test_an_exported_study_holds_every_trial_with_its_origin_and_configuration(sqlite: str) -> None:
    one, study = everything()
    assert export_search(study, one, sqlite, "all of it") == len(study.trials)
    trials = optuna.load_study(study_name="all of it", storage=sqlite).get_trials()
    assert [t.user_attrs["number"] for t in trials] == [t.number for t in study.trials]
    assert [t.user_attrs["origin"] for t in trials] == [t.origin for t in study.trials]
    assert {"default", "seed", "sampler"} == {t.origin for t in study.trials}
    assert trials[0].params["fusion.k"] == 60  # outside the space, and shown all the same
    assert "blend.min_score" not in trials[0].params  # not set
    for trial, mine in zip(trials[1:-1], study.trials[1:-1], strict=True):
        assert trial.params == {p: v for p, v in mine.params.items() if v is not None}
        assert trial.user_attrs["config"] == one.build_system(mine.params).resolved_config
        assert trial.value == (None if mine.is_failed else mine.value)
    assert [t.state.name for t in trials[-2:]] == ["FAIL", "FAIL"]
    assert "config" not in trials[-1].user_attrs
    assert any("fusion.weights.bad" not in t.params for t in trials)  # it takes no part there


def test_optuna_dashboard_shows_it(sqlite: str) -> None:
    dashboard = pytest.importorskip("optuna_dashboard")
    one, study = everything()
    export_search(study, one, sqlite, "all of it")
    storage = optuna.storages.RDBStorage(sqlite)
    application = dashboard.wsgi(storage)

    def get(path: str) -> Any:  # noqa: ANN401 - JSON
        environ: dict[str, Any] = {"PATH_INFO": path}
        setup_testing_defaults(environ)
        said: list[str] = []
        body = b"".join(application(environ, lambda status, *_: said.append(status)))
        assert said == ["200 OK"], (said, body)
        return json.loads(body)

    (summary,) = get("/api/studies")["study_summaries"]
    assert summary["study_name"] == "all of it"
    shown = get(f"/api/studies/{summary['study_id']}")["trials"]
    assert len(shown) == len(study.trials)
    assert [t["state"] for t in shown] == [
        "Fail" if t.is_failed else "Complete" for t in study.trials
    ]
    assert shown[0]["values"] == [study.default_trial.value]
    for trial, mine in zip(shown, study.trials, strict=True):
        notes = {note["key"]: note["value"] for note in trial["user_attrs"]}
        assert notes["origin"] == mine.origin
    storage.remove_session()
    storage.engine.dispose()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE trial_values SET value = NULL",
        "UPDATE trial_params SET param_value = NULL",
        "UPDATE trial_params SET distribution_json = '{'",
        "UPDATE trial_params SET param_name = 'other' WHERE param_id IN "
        "(SELECT min(param_id) FROM trial_params GROUP BY trial_id)",
        "UPDATE trials SET number = NULL",
        "UPDATE trials SET state = 'X'",
    ],
)
def test_a_damaged_database_is_one_line(damage: str, tmp_path: Path) -> None:
    path, url = tmp_path / "study.db", f"sqlite:///{tmp_path}/study.db"
    search_shared_study(OBJECTIVE, KEEP, SETTINGS, url)
    found = run_search(OBJECTIVE, KEEP, SETTINGS)
    export_search(found, OBJECTIVE, url, "mine")
    with closing(sqlite3.connect(path)) as database, database:
        assert database.execute(damage).rowcount
    with pytest.raises(ConfigError, match=r"study\.db: .*damaged"):
        search_shared_study(OBJECTIVE, KEEP, SETTINGS, url)
    with pytest.raises(ConfigError, match=r"damaged|another study"):
        export_search(found, OBJECTIVE, url, "mine")


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite+pysqlite://"])
def test_a_database_in_memory_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="in memory:"):
        search_shared_study(OBJECTIVE, KEEP, SETTINGS, url)
