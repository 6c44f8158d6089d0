"""Optuna's databases: opening one, and exporting a finished search to one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final

import optuna
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
from sqlalchemy.exc import (
    IntegrityError,
    OperationalError,
    ProgrammingError,
    SQLAlchemyError,
)

from fusion_bench.errors import ConfigError, FusionBenchError, MissingExtraError
from fusion_bench.evaluation.scores import resolved_config
from fusion_bench.tune.search.samplers import distribution_around, silence_experimental_warnings
from fusion_bench.tune.search.search import SearchResult
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective

#: Seconds after which opening is tried again: two processes may make the tables at once.
RETRY_DELAYS: Final = (0.5, 1.0)
#: How often the trial of a dead process is repeated.
MAX_RETRIES: Final = 3


@contextmanager
def open_storage(url: str, *, heartbeat: tuple[int, int] | None = None) -> Iterator[RDBStorage]:
    """Optuna's storage at a URL; its connections are closed in the end.

    Args:
        url: As SQLAlchemy reads it, such as ``sqlite:///study.db``.
        heartbeat: Seconds between two heartbeats, and until a process counts as dead.

    Raises:
        ConfigError: The database cannot be reached; the message hides the password.
        MissingExtraError: The driver of PostgreSQL is not installed.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        storage = _connect(url, heartbeat)
    except (SQLAlchemyError, ImportError, ValueError) as error:
        raise _unreachable(url, error) from error
    try:
        yield storage
    except SQLAlchemyError as error:
        raise _unreachable(url, error) from error
    finally:
        storage.remove_session()
        storage.engine.dispose()


def export_search(result: SearchResult, objective: TuningObjective, url: str, name: str) -> int:
    """Write a finished search to an Optuna storage, all trials at once.

    Args:
        result: The search.
        objective: What was tuned.
        url: Of the database, such as ``sqlite:///study.db``; optuna-dashboard reads it.
        name: Of the study there; one of the same name is an error.

    Returns:
        How many trials were written: all of them.

    Raises:
        ConfigError: There is a study of that name, or the database cannot be reached.
    """
    with open_storage(url) as storage:
        try:
            study = optuna.create_study(storage=storage, study_name=name, direction="maximize")
        except optuna.exceptions.DuplicatedStudyError:
            raise ConfigError(
                f"export: {_hide_password(url)} has a study {name!r} already: remove it, or write "
                "elsewhere"
            ) from None
        study.add_trials([_frozen_trial(trial, objective) for trial in result.trials])
    return len(result.trials)


def _connect(url: str, heartbeat: tuple[int, int] | None) -> RDBStorage:
    if url.startswith(("postgresql://", "postgres://", "postgresql+psycopg2://")):
        if find_spec("psycopg2") is None:
            raise MissingExtraError("psycopg2", extra="postgres", purpose="a PostgreSQL storage")
        url = f"postgresql+psycopg2://{url.partition('://')[2]}"
    with silence_experimental_warnings():
        options: dict[str, Any] = {"engine_kwargs": {"pool_pre_ping": True}}
        if heartbeat is not None:
            options["heartbeat_interval"], options["grace_period"] = heartbeat
            options["heartbeat_stale_trial_callback"] = RetryHeartbeatStaleTrialCallback(
                MAX_RETRIES
            )
        for delay in RETRY_DELAYS:
            try:
                return RDBStorage(url, **options)
            except (IntegrityError, OperationalError, ProgrammingError):
                time.sleep(delay)
        return RDBStorage(url, **options)


def _frozen_trial(trial: Trial, objective: TuningObjective) -> optuna.trial.FrozenTrial:
    """A finished trial as Optuna keeps it, with the whole configuration beside its parameters."""
    states = optuna.trial.TrialState
    distributions = {}
    for parameter in objective.parameters:
        if parameter.path in trial.params:
            wide = distribution_around(parameter, trial.params[parameter.path])
            if wide is not None:
                distributions[parameter.path] = wide
    return optuna.create_trial(
        params={path: trial.params[path] for path in distributions},
        distributions=distributions,
        value=None if trial.is_failed else trial.value,
        state=states.FAIL if trial.is_failed else states.COMPLETE,
        user_attrs={
            "origin": trial.origin,
            "number": trial.number,
            **_system_attribute(trial, objective),
        },
    )


def _system_attribute(trial: Trial, objective: TuningObjective) -> dict[str, object]:
    """The resolved system; nothing where its method refuses these values."""
    try:
        return {"config": resolved_config(objective.build_system(trial.params))}
    except FusionBenchError:
        return {}


def _unreachable(url: str, error: Exception) -> ConfigError:
    reason = str(error).strip().splitlines()[0]
    return ConfigError(
        f"storage {_hide_password(url)}: {reason} (an address reads "
        "postgresql://user@host/database or sqlite:///file.db)"
    )


def _hide_password(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
