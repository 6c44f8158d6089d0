"""One search by many processes, through a database that Optuna keeps.

Every process starts trials until enough are finished, and repeats those of processes without
heartbeat. Only a search that one process begins and ends repeats itself by its seed.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from fusion_bench.data.fingerprint import Fingerprint
from fusion_bench.data.ordering import BoolArray
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.tune_settings import SearchSettings
from fusion_bench.tune.search import samplers, search
from fusion_bench.tune.search.database_address import is_in_memory, show_address, show_reason
from fusion_bench.tune.search.heartbeat_storage import HeartbeatStorage
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.util.optional_imports import import_optional

log = logging.getLogger("fusion_bench.tune")

#: What a trial notes: where its parameters come from.
ORIGIN = "fusion_bench:origin"
#: Seconds for which a process waits for a lock that another holds.
LOCK_TIMEOUT = 60
#: What a study notes: the parts of its fingerprint; and those in which the folds of a run differ.
PARTS, PARTS_OF_FOLDS = "fusion_bench:parts", frozenset({"seed", "tuning queries"})
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)  # pruned: could not be computed


@contextmanager
def open_storage(url: str, heartbeat: tuple[int, int] | None = None) -> Iterator[HeartbeatStorage]:
    """Optuna's storage at a URL as SQLAlchemy reads it, closed in the end.

    Raises:
        FusionBenchError: It cannot be reached (the message hides the password), or has no driver.
    """
    if is_in_memory(url):
        raise ConfigError(f"storage {show_address(url)}: in memory: name a file: sqlite:///file.db")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    url = re.sub(r"^postgres(ql)?://", "postgresql+psycopg2://", url)
    if url.startswith("postgresql+psycopg2://"):
        import_optional("psycopg2", extra="postgres", purpose="a PostgreSQL storage")
    try:
        storage = _connect(url, heartbeat)
        try:
            yield storage
        finally:
            storage.remove_session()
            storage.engine.dispose()
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        refusal = error if isinstance(error, SQLAlchemyError) else error.__cause__ or error
        reason = show_reason(url, str(refusal).strip().splitlines()[0])
        form = "an address reads postgresql://user@host/database or sqlite:///file.db"
        raise ConfigError(f"storage {show_address(url)}: {reason} ({form})") from None


def _connect(url: str, heartbeat: tuple[int, int] | None) -> HeartbeatStorage:
    interval, grace = heartbeat or (None, None)
    engine = {"pool_pre_ping": True, "connect_args": _connection_limits(url)}
    options: Any = {"heartbeat_interval": interval, "grace_period": grace}
    with samplers.silence_experimental_warnings():
        try:
            return HeartbeatStorage(url, engine, **options)
        except DBAPIError:  # two processes may make the tables at once
            time.sleep(1.0)
            return HeartbeatStorage(url, engine, **options)
        except (ImportError, TypeError, ValueError) as error:
            raise ArgumentError(str(error)) from error


def _connection_limits(url: str) -> dict[str, object]:
    """Options of the driver, so that no process waits without end for a lock."""
    if url.startswith("sqlite:"):
        return {"timeout": LOCK_TIMEOUT}
    if url.startswith("postgresql+psycopg2:") and "options=" not in url:
        return {"connect_timeout": LOCK_TIMEOUT, "options": f"-c lock_timeout={LOCK_TIMEOUT}s"}
    return {}


def search_shared_study(
    objective: TuningObjective,
    keep: BoolArray,
    settings: SearchSettings,
    url: str,
    *,
    on_trial: search.TrialCallback = search.ignore_trial,
    heartbeat: tuple[int, int] = (10, 60),
) -> search.SearchResult:
    """Take part in a search until it is done: the trials of all processes, the default first.

    As :func:`run_search`; ``heartbeat``: seconds between two, and until a process counts as dead.
    """
    part, interrupted = search.select_queries(objective, keep), False
    deadline = time.monotonic() + (settings.timeout or math.inf)
    samplers.check_sampler(part.parameters, settings.sampler)
    default, wanted = part.default_params, settings.trials - 1
    first = best = Trial(0, default, float(part.evaluate_params([default]).mean()), "default")
    done: list[Trial] = []
    lost: list[int] = []

    def evaluate(trial: optuna.Trial) -> float:
        try:
            params = part.normalize_weights(samplers.suggest_params(trial, part.parameters))
        except UpdateFinishedTrialError:
            lost.append(trial.number)
            raise
        value = float(part.evaluate_params([params]).mean())
        done.append(Trial(trial.number, params, value, trial.user_attrs.get(ORIGIN, "sampler")))
        if math.isnan(value):
            raise optuna.TrialPruned
        return value

    with open_storage(url, heartbeat) as storage:
        with explain_damage(url):
            study = _join_study(part, settings, storage)
            for frozen in study.get_trials(False, FINISHED):
                _read_trial(frozen, frozen.number + 1, part)
        try:
            while time.monotonic() < deadline and len(study.get_trials(False, FINISHED)) < wanted:
                done.clear()
                lost.clear()
                try:
                    study.optimize(evaluate, 1)
                except (AssertionError, ValueError, UpdateFinishedTrialError) as error:
                    # Another process failed this trial: this one was suspended.
                    if done or lost or isinstance(error, UpdateFinishedTrialError):
                        continue
                    raise
                best = max(best, done[0], key=lambda trial: trial.value)
                on_trial(done[0], best)
        except KeyboardInterrupt:
            interrupted = True
        finished = enumerate(study.get_trials(False, FINISHED), 1)
        trials = [_read_trial(frozen, number, part) for number, frozen in finished]
    return search.SearchResult((first, *trials), interrupted)


@contextmanager
def explain_damage(url: str) -> Iterator[None]:
    """Say that a database holds what no search writes, where Optuna stumbles over it.

    Raises:
        ConfigError: It does.
    """
    try:
        yield
    except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ConfigError(
            f"storage {show_address(url)}: its study is damaged ({type(error).__name__}): remove "
            "it, or name another database"
        ) from None


def _join_study(
    objective: TuningObjective, settings: SearchSettings, storage: HeartbeatStorage
) -> optuna.Study:
    """The study of this search, with all presets queued, also those that a killed process left."""
    sampler = samplers.optuna_sampler(settings.sampler, settings.seed)
    identity = search.search_fingerprint(objective, settings)
    name = f"fusion_bench-{identity.digest[:40]}"
    options: Any = {"storage": storage, "study_name": name, "sampler": sampler}
    try:
        study = optuna.create_study(direction="maximize", **options)
        _log_other_study(storage, identity)
    except optuna.exceptions.DuplicatedStudyError:
        sampler.reseed_rng()  # or two processes would try the same points
        study = optuna.load_study(**options)
    if PARTS not in study.user_attrs:
        study.set_user_attr(PARTS, dict(identity.parts))
    presets = [*filter(objective.contains, objective.preset_params[: settings.trials - 1])]
    storage.queue_missing(storage.get_study_id_from_name(name), presets, {ORIGIN: "seed"})
    return study


def _log_other_study(storage: RDBStorage, identity: Fingerprint) -> None:
    """Say what is not as in the most similar study, unless this is another part of the same run."""
    known = (other.user_attrs.get(PARTS) for other in storage.get_all_studies())
    others = [Fingerprint(parts) for parts in known if isinstance(parts, dict)]
    if not others:
        return
    nearest = min(others, key=lambda other: len(list(identity.find_changes(other))))
    changed = {name for name, part in identity.parts.items() if nearest.parts.get(name) != part}
    if changed - PARTS_OF_FOLDS:
        changes = identity.summarize_changes(nearest)
        log.warning("storage: a new study begins; not as in an earlier one: %s", changes)


def _read_trial(trial: FrozenTrial, number: int, objective: TuningObjective) -> Trial:
    """A trial of the database, its parameters as they were done."""
    known = {parameter.path: parameter for parameter in objective.parameters}
    params = {path: known[path].round_value(value) for path, value in trial.params.items()}
    value = math.nan if trial.value is None else trial.value
    origin = trial.user_attrs.get(ORIGIN, "sampler")
    return Trial(number, objective.normalize_weights(params), value, origin)
