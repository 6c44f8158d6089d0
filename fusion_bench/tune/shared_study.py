"""A search that several processes share through Optuna's database; finished searches as studies."""

from __future__ import annotations

import contextlib
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import optuna
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.study import MaxTrialsCallback, Study
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from fusion_bench.data.ordering import BoolArray
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.experiment.settings import SearchSettings
from fusion_bench.io.fingerprints import Fingerprint
from fusion_bench.tune import search
from fusion_bench.tune.distribution import show_address, show_reason
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.util.optional_imports import import_optional

#: Seconds between two heartbeats of a trial, and after which Optuna repeats it.
HEARTBEAT: Final[Mapping[str, Any]] = {"heartbeat_interval": 10, "grace_period": 60}
#: Seconds for which a process waits for a lock on an SQLite file.
LOCK_TIMEOUT: Final = 60
#: Attributes of a trial (where its parameters come from) and of a study (its fingerprint's parts).
ORIGIN, PARTS = "fusion_bench:origin", "fusion_bench:parts"
#: How a change begins that there is between the folds of one run.
OF_A_FOLD: Final = ("seed: ", "tuning queries: ")
#: States of a finished trial; a pruned trial could not be computed.
FINISHED: Final = (TrialState.COMPLETE, TrialState.PRUNED)


@contextlib.contextmanager
def open_storage(url: str) -> Iterator[RDBStorage]:
    """Open Optuna's storage at a URL of SQLAlchemy, with heartbeats; close it at the end.

    Raises:
        ConfigError: The database cannot be used; the message hides the password.
        MissingExtraError: The driver of PostgreSQL is not installed.
    """
    if re.fullmatch(r"sqlite.*(//|:memory:|mode=memory.*)", url):
        raise ConfigError(f"storage {show_address(url)}: in memory: name a file: sqlite:///file.db")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    url = re.sub(r"^postgres(ql)?://", "postgresql+psycopg2://", url)
    if url.startswith("postgresql+psycopg2://"):
        import_optional("psycopg2", extra="postgres", purpose="a PostgreSQL storage")
    wait = {"connect_args": {"timeout": LOCK_TIMEOUT}} if url.startswith("sqlite:") else {}
    try:
        try:
            with search.silence_experimental_warnings():
                repeat = RetryHeartbeatStaleTrialCallback(max_retry=3)
                options = {**HEARTBEAT, "heartbeat_stale_trial_callback": repeat}
                storage = RDBStorage(url, {"pool_pre_ping": True, **wait}, **options)
        except (ImportError, TypeError, ValueError) as error:
            raise ArgumentError(str(error)) from error
        with contextlib.ExitStack() as stack:
            stack.callback(storage.engine.dispose)
            stack.callback(storage.remove_session)
            yield storage
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        refusal = error if isinstance(error, SQLAlchemyError) else error.__cause__ or error
        reason = show_reason(url, str(refusal).strip().splitlines()[0])
        form = "an address reads postgresql://user@host/database or sqlite:///file.db"
        raise ConfigError(f"storage {show_address(url)}: {reason} ({form})") from None


def search_shared_study(
    objective: TuningObjective,
    keep: BoolArray,
    settings: SearchSettings,
    url: str,
    *,
    on_trial: search.TrialCallback = lambda _trial, _best: None,
) -> search.SearchResult:
    """Run trials until all processes together have finished enough; return the trials of all.

    Args:
        objective: What is tuned.
        keep: Shape (Q,): the queries that may be looked at.
        settings: Of the search.
        url: Of the database.
        on_trial: Called after each trial of this process with it and the best so far.

    Raises:
        FusionBenchError: The default cannot be computed, the sampler cannot be shared, the database
            cannot be used, or another process failed a trial of this one.
    """
    part = search.select_queries(objective, keep)
    search.check_sampler(part.parameters, settings.sampler)
    default = part.default_params
    best = first = search.Trial(
        0, default, float(part.evaluate_params([default]).mean()), "default"
    )
    wanted, interrupted = settings.trials - 1, False

    def evaluate(trial: optuna.Trial) -> float:
        params = part.normalize_weights(search.suggest_params(trial, part.parameters))
        value = float(part.evaluate_params([params]).mean())
        if math.isnan(value):
            raise optuna.TrialPruned
        return value

    def report(_: Study, finished: FrozenTrial) -> None:
        nonlocal best
        trial = _read_trial(finished, part, finished.number)
        best = max(best, trial, key=lambda each: each.value)
        on_trial(trial, best)

    with open_storage(url) as storage:
        study = _join_study(part, settings, storage)
        callbacks = (report, MaxTrialsCallback(wanted, FINISHED))
        try:
            if len(study.get_trials(False, FINISHED)) < wanted:
                study.optimize(evaluate, timeout=settings.timeout, callbacks=callbacks)
        except KeyboardInterrupt:
            interrupted = True
        except (AssertionError, ValueError) as error:
            if "Cannot tell" not in f"{error} {error.__context__}":
                raise
            raise FusionBenchError(
                f"storage {show_address(url)}: another process gave up a trial of this process, "
                "which stood still for too long: run the same command again"
            ) from None
        finished = enumerate(study.get_trials(False, FINISHED), 1)
        done = [_read_trial(trial, part, number) for number, trial in finished]
    return search.SearchResult((first, *done), interrupted)


def _join_study(objective: TuningObjective, settings: SearchSettings, storage: RDBStorage) -> Study:
    """The study of this search, with the presets in its queue; logs why a new one begins."""
    sampler = search.optuna_sampler(settings.sampler, settings.seed)
    identity = search.search_fingerprint(objective, settings)
    options: Any = {"study_name": f"fusion_bench-{identity.digest[:40]}", "storage": storage}
    others = [other.user_attrs.get(PARTS) for other in storage.get_all_studies()]
    changes = [[*identity.find_changes(Fingerprint(parts))] for parts in others if parts]
    try:
        study = optuna.create_study(**options, sampler=sampler, direction="maximize")
        study.set_user_attr(PARTS, dict(identity.parts))
        nearest = min(changes, key=len, default=[])
        if not all(change.startswith(OF_A_FOLD) for change in nearest):
            text = f"storage: a new study begins; changed: {'; '.join(nearest[:3])}"
            logging.getLogger("fusion_bench.tune").warning(text)
    except optuna.exceptions.DuplicatedStudyError:
        sampler.reseed_rng()  # or two processes would try the same points
        study = optuna.load_study(**options, sampler=sampler)
    for preset in filter(objective.contains, objective.preset_params[: settings.trials - 1]):
        study.enqueue_trial(dict(preset), {ORIGIN: "seed"}, skip_if_exists=True)
    return study


def _read_trial(trial: FrozenTrial, objective: TuningObjective, number: int) -> search.Trial:
    """A finished trial of the database, its parameters as they were evaluated."""
    known = {parameter.path: parameter for parameter in objective.parameters}
    params = {path: known[path].round_value(value) for path, value in trial.params.items()}
    value = math.nan if trial.value is None else trial.value
    origin = trial.user_attrs.get(ORIGIN, "sampler")
    return search.Trial(number, objective.normalize_weights(params), value, origin)


def export_search(
    result: search.SearchResult, objective: TuningObjective, url: str, name: str
) -> None:
    """Write a finished search to an Optuna storage.

    Args:
        result: The search.
        objective: What was tuned.
        url: Of the database, such as ``sqlite:///study.db``; optuna-dashboard reads it.
        name: Of the study there. The trials that an earlier call wrote there are kept.

    Raises:
        ConfigError: A study of that name has other trials, or the database cannot be used.
    """
    trials = [_freeze_trial(trial, objective) for trial in result.trials]
    with open_storage(url) as storage:
        study = optuna.create_study(
            storage=storage, study_name=name, direction="maximize", load_if_exists=True
        )
        stored, new = (
            [(t.values, t.params, t.user_attrs) for t in s] for s in (study.trials, trials)
        )
        if stored != new[: len(stored)] or study.direction.name != "MAXIMIZE":
            raise ConfigError(
                f"export: there is another study {name!r} there: remove it, or name another"
            )
        study.add_trials(trials[len(stored) :])


def build_study(trials: Iterable[search.Trial], objective: TuningObjective, name: str) -> Study:
    """A finished search as a study of Optuna in memory.

    Args:
        trials: Its trials.
        objective: What was tuned.
        name: Of the study.
    """
    study = optuna.create_study(study_name=name, direction="maximize")
    study.add_trials([_freeze_trial(trial, objective) for trial in trials])
    return study


def _freeze_trial(trial: search.Trial, objective: TuningObjective) -> FrozenTrial:
    """A finished trial as Optuna keeps it, with the whole configuration beside its parameters.

    A value outside its range, such as a default's, is left to the configuration.
    """
    given = trial.params
    known = [p for p in objective.parameters if p.path in given and p.contains(given[p.path])]
    attributes: dict[str, object] = {"origin": trial.origin, "number": trial.number}
    with contextlib.suppress(FusionBenchError):  # where its method refuses these values
        attributes["config"] = objective.build_system(given).resolved_config
    return optuna.create_trial(
        params={parameter.path: given[parameter.path] for parameter in known},
        distributions={each.path: search.optuna_distribution(each) for each in known},
        value=None if trial.is_failed else trial.value,
        state=TrialState.FAIL if trial.is_failed else TrialState.COMPLETE,
        user_attrs=attributes,
    )
