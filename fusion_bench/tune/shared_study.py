"""One search by many processes through a database of Optuna's; finished searches as studies.

Every process starts trials until enough are finished, and repeats those of processes without
heartbeat. Only a search that one process begins and ends repeats itself by its seed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import RDBStorage
from optuna.storages._rdb import models
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial
from sqlalchemy import select, update
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session

from fusion_bench.config.parameters import Parameter, Value
from fusion_bench.data.ordering import BoolArray
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.experiment.settings import SearchSettings
from fusion_bench.io.fingerprints import Fingerprint
from fusion_bench.tune import search
from fusion_bench.tune.distribution import find_database_file, show_address, show_reason
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.util.optional_imports import import_optional

#: How often a trial whose process is killed is repeated.
MOST_REPETITIONS: Final = 3
#: What a trial notes: the parameters that it was queued with; the numbers of those it repeats.
FIXED, REPEATED = "fixed_params", "retry_history"


class HeartbeatStorage(RDBStorage):
    """Optuna's storage: a trial that runs has a heartbeat, and one that fails is repeated.

    Optuna starts a trial first, and its heartbeat later; it lets a trial fail first, and queues its
    repetition later. A process that is killed in between would leave a trial that nobody takes up.
    """

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        """Set a trial's state: after its heartbeat where it starts, with a repetition if it fails.

        Raises:
            UpdateFinishedTrialError: It has ended.
        """
        if state == TrialState.FAIL:
            return self._fail_trial(trial_id)
        if state == TrialState.RUNNING:
            self.record_heartbeat(trial_id)
        return super().set_trial_state_values(trial_id, state, values)

    def queue_missing(
        self, study_id: int, presets: Sequence[Mapping[str, Any]], attributes: Mapping[str, Any]
    ) -> None:
        """Queue the presets that are neither queued, at work nor done.

        One that was repeated too often is left alone.

        Args:
            study_id: The study.
            presets: The parameters of each.
            attributes: What the new trials note.
        """
        with self._lock_study(study_id) as session:
            known = _list_queued(session, study_id)
            for preset in presets:
                if dict(preset) not in known:
                    fixed = create_trial(
                        state=TrialState.WAITING,
                        system_attrs={FIXED: dict(preset)},
                        user_attrs=dict(attributes),
                    )
                    self._get_prepared_new_trial(study_id, fixed, session)

    def _create_new_trial(
        self, study_id: int, template_trial: FrozenTrial | None = None
    ) -> FrozenTrial:
        """Create a trial; one that is to run waits until it has a heartbeat."""
        if template_trial is not None:
            return super()._create_new_trial(study_id, template_trial)
        while True:
            trial_id = self.create_new_trial(study_id, create_trial(state=TrialState.WAITING))
            if self.set_trial_state_values(trial_id, TrialState.RUNNING):
                return self.get_trial(trial_id)  # and no other process was faster

    def _fail_trial(self, trial_id: int) -> bool:
        """Let a trial fail and queue its repetition, both or neither."""
        repetition = _repeat(self.get_trial(trial_id))
        with self.scoped_session() as session:
            study_id: Any = models.TrialModel.find_or_raise_by_id(trial_id, session).study_id
        with self._lock_study(study_id) as session:
            trial: Any = models.TrialModel.find_or_raise_by_id(trial_id, session, for_update=True)
            self.check_trial_is_updatable(trial_id, trial.state)
            if repetition is not None:
                self._get_prepared_new_trial(study_id, repetition, session)
            trial.state, trial.datetime_complete = TrialState.FAIL, datetime.now()
        return True

    @contextmanager
    def _lock_study(self, study_id: int) -> Iterator[Session]:
        """A transaction that no other one which begins like this, or makes a trial, runs beside."""
        with self.scoped_session() as session, session.begin():
            # To write is what locks in every database; SQLite has no other locks.
            study = models.StudyModel
            session.execute(
                update(study).where(study.study_id == study_id).values(study_id=study_id)
            )
            yield session


def _repeat(trial: FrozenTrial) -> FrozenTrial | None:
    """A trial that repeats another one; None = it has been repeated often enough."""
    history = [*trial.system_attrs.get(REPEATED, []), trial.number]
    if len(history) > MOST_REPETITIONS:
        return None
    first = {"failed_trial": trial.number}
    return create_trial(
        state=TrialState.WAITING,
        params=trial.params,
        distributions=trial.distributions,
        user_attrs=trial.user_attrs,
        system_attrs={**first, **trial.system_attrs, REPEATED: history},
    )


def _list_queued(session: Session, study_id: int) -> list[dict[str, Any]]:
    """The parameters of queued trials that are not to be queued again."""
    trial, attribute = models.TrialModel, models.TrialSystemAttributeModel
    rows: Iterable[Any] = session.execute(
        select(trial.trial_id, trial.state, attribute.key, attribute.value_json)
        .join(attribute, attribute.trial_id == trial.trial_id)
        .where(trial.study_id == study_id, attribute.key.in_([FIXED, REPEATED]))
    )
    notes: dict[tuple[int, TrialState], dict[str, Any]] = {}
    for number, state, key, value in rows:
        notes.setdefault((number, state), {})[key] = json.loads(value)
    return [
        noted[FIXED]
        for (_, state), noted in notes.items()
        if FIXED in noted
        and (state != TrialState.FAIL or len(noted.get(REPEATED, [])) >= MOST_REPETITIONS)
    ]


log = logging.getLogger("fusion_bench.tune")

#: What a trial notes: where its parameters come from.
ORIGIN = "fusion_bench:origin"
#: Seconds for which a process waits for a lock that another holds.
LOCK_TIMEOUT = 60
#: What a study notes: the parts of its fingerprint; and those in which the folds of a run differ.
PARTS, PARTS_OF_FOLDS = "fusion_bench:parts", frozenset({"seed", "tuning queries"})
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)  # pruned: could not be computed


def _is_in_memory(url: str) -> bool:
    """Whether an SQLite database is in memory, so that it ends with its connection."""
    is_file = find_database_file(url) is not None or (":///file:" in url and "memory" not in url)
    return url.startswith("sqlite") and "://" in url and not is_file


@contextmanager
def open_storage(url: str, heartbeat: tuple[int, int] | None = None) -> Iterator[HeartbeatStorage]:
    """Optuna's storage at a URL as SQLAlchemy reads it, closed in the end.

    Raises:
        FusionBenchError: It cannot be reached (the message hides the password), or has no driver.
    """
    if _is_in_memory(url):
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
    with search.silence_experimental_warnings():
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
    on_trial: search.TrialCallback = lambda _trial, _best: None,
    heartbeat: tuple[int, int] = (10, 60),
) -> search.SearchResult:
    """Take part in a search until it is done: the trials of all processes, the default first.

    As :func:`run_search`; ``heartbeat``: seconds between two, and until a process counts as dead.
    """
    part, interrupted = search.select_queries(objective, keep), False
    search.check_sampler(part.parameters, settings.sampler)
    default = part.default_params
    first = search.Trial(0, default, float(part.evaluate_params([default]).mean()), "default")
    with open_storage(url, heartbeat) as storage:
        with explain_damage(url):
            study = _join_study(part, settings, storage)
            _read_trials(study, part)
        try:
            _run_trials(study, part, settings, first, on_trial)
        except KeyboardInterrupt:
            interrupted = True
        trials = _read_trials(study, part)
    return search.SearchResult((first, *trials), interrupted)


def _run_trials(
    study: optuna.Study,
    objective: TuningObjective,
    settings: SearchSettings,
    best: search.Trial,
    on_trial: search.TrialCallback,
) -> None:
    """Start trials until all processes together have finished enough, or the time is over."""
    deadline = time.monotonic() + (settings.timeout or math.inf)
    wanted = settings.trials - 1
    while time.monotonic() < deadline and len(study.get_trials(False, FINISHED)) < wanted:
        trial = _run_trial(study, objective)
        if trial is not None:
            best = max(best, trial, key=lambda each: each.value)
            on_trial(trial, best)


def _run_trial(study: optuna.Study, objective: TuningObjective) -> search.Trial | None:
    """One trial; None = this process was suspended, and another one failed its trial."""
    done: list[search.Trial] = []
    is_lost = False

    def evaluate(trial: optuna.Trial) -> float:
        nonlocal is_lost
        try:
            suggested = search.suggest_params(trial, objective.parameters)
        except UpdateFinishedTrialError:
            is_lost = True
            raise
        params = objective.normalize_weights(suggested)
        value = float(objective.evaluate_params([params]).mean())
        done.append(
            search.Trial(trial.number, params, value, trial.user_attrs.get(ORIGIN, "sampler"))
        )
        if math.isnan(value):
            raise optuna.TrialPruned
        return value

    try:
        study.optimize(evaluate, 1)
    except (AssertionError, ValueError, UpdateFinishedTrialError) as error:
        if done or is_lost or isinstance(error, UpdateFinishedTrialError):
            return None
        raise
    return done[0]


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
    sampler = search.optuna_sampler(settings.sampler, settings.seed)
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


def _read_trials(study: optuna.Study, objective: TuningObjective) -> list[search.Trial]:
    """The finished trials of the database, counted from 1, their parameters as they were done."""
    known = {parameter.path: parameter for parameter in objective.parameters}
    trials = []
    # A damaged database may have trials without a number.
    finished = sorted(study.get_trials(False, FINISHED), key=lambda trial: int(trial.number))
    for number, trial in enumerate(finished, 1):
        params = {path: known[path].round_value(value) for path, value in trial.params.items()}
        value = math.nan if trial.value is None else trial.value
        origin = trial.user_attrs.get(ORIGIN, "sampler")
        trials.append(search.Trial(number, objective.normalize_weights(params), value, origin))
    return trials


def export_search(
    result: search.SearchResult, objective: TuningObjective, url: str, name: str
) -> int:
    """Write a finished search to an Optuna storage, all trials at once.

    Args:
        result: The search.
        objective: What was tuned.
        url: Of the database, such as ``sqlite:///study.db``; optuna-dashboard reads it.
        name: Of the study there. The trials that an earlier call wrote there are kept.

    Returns:
        How many trials were written: all of them.

    Raises:
        ConfigError: There is a study of that name with other trials, or the database cannot be
            reached.
    """
    trials = [_frozen_trial(trial, objective) for trial in result.trials]
    with open_storage(url) as storage, explain_damage(url):
        study = optuna.create_study(
            storage=storage, study_name=name, direction="maximize", load_if_exists=True
        )
        stored = study.get_trials()
        is_start = len(stored) <= len(trials) and all(map(_is_same, stored, trials))
        if not is_start or study.direction != optuna.study.StudyDirection.MAXIMIZE:
            raise ConfigError(
                f"export: the database has another study {name!r} already: remove it, or write "
                "elsewhere"
            )
        study.add_trials(trials[len(stored) :])
    return len(trials)


def _is_same(stored: FrozenTrial, trial: FrozenTrial) -> bool:
    """Whether a stored trial is what an export of another one stores."""
    fields = ("state", "values", "params", "user_attrs")
    return all(getattr(stored, name) == getattr(trial, name) for name in fields)


def build_study(trials: Iterable[search.Trial], objective: TuningObjective, name: str) -> Study:
    """A finished search as a study of Optuna in memory.

    Args:
        trials: Its trials.
        objective: What was tuned.
        name: Of the study.
    """
    with search.silence_experimental_warnings():
        storage = optuna.storages.InMemoryStorage()
        study = optuna.create_study(storage=storage, study_name=name, direction="maximize")
        study.add_trials([_frozen_trial(trial, objective) for trial in trials])
    return study


def _frozen_trial(trial: search.Trial, objective: TuningObjective) -> FrozenTrial:
    """A finished trial as Optuna keeps it, with the whole configuration beside its parameters."""
    ranges = {
        parameter.path: _range_around(parameter, trial.params[parameter.path])
        for parameter in objective.parameters
        if parameter.path in trial.params
    }
    distributions = {
        path: search.optuna_distribution(p) for path, p in ranges.items() if p is not None
    }
    attributes: dict[str, object] = {"origin": trial.origin, "number": trial.number}
    with contextlib.suppress(FusionBenchError):  # where its method refuses these values
        attributes["config"] = objective.build_system(trial.params).resolved_config
    return optuna.create_trial(
        params={path: trial.params[path] for path in distributions},
        distributions=distributions,
        value=None if trial.is_failed else trial.value,
        state=TrialState.FAIL if trial.is_failed else TrialState.COMPLETE,
        user_attrs=attributes,
    )


def _range_around(parameter: Parameter, value: Value) -> Parameter | None:
    """The parameter, wide enough for a value outside its range, such as a default.

    None = no range holds it: a threshold that is not set, a choice that is not offered.
    """
    if parameter.contains(value):
        return parameter
    if parameter.kind == "choice" or isinstance(value, str | bool) or value is None:
        return None
    if parameter.kind == "int" and not float(value).is_integer():
        return None
    low, high = min(parameter.bounds[0], value), max(parameter.bounds[1], value)
    log = parameter.log and low > 0
    return replace(parameter, low=low, high=high, step=None, log=log)
