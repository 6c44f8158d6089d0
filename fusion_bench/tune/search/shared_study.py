"""One search from many machines, through a database that Optuna keeps.

Every machine runs the same command: each asks for its own batch, knowing what the others have under
way, and the search ends for all of them when enough trials are done. A machine that dies leaves
trials that are still running; once its heartbeat is overdue another one takes them up again. The
order in which machines come by is chance, so a search that several take part in, or that one takes
up again, is not repeatable by its seed; one that a machine begins and ends alone is.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from fusion_bench.config.parameters import Params
from fusion_bench.errors import ConfigError, FusionBenchError, MissingExtraError
from fusion_bench.evaluation.scores import resolved_config
from fusion_bench.experiment.tune_settings import SearchSettings
from fusion_bench.tune.search.processes import Evaluate, evaluators
from fusion_bench.tune.search.samplers import (
    check_sampler,
    distribution_around,
    optuna_sampler,
    round_params,
    suggest_params,
)
from fusion_bench.tune.search.search import SearchResult, TrialCallback, search_fingerprint
from fusion_bench.tune.search.trial_log import Trial, TrialOrigin
from fusion_bench.tune.space.objective import TuningObjective

if TYPE_CHECKING:
    import optuna

__all__ = ["export", "shared_search"]

#: Seconds between two signs of life, and after how many a machine counts as dead.
HEARTBEAT, GRACE = 10, 60
#: How often a trial is taken up again.
RETRIES: Final = 3
#: Seconds between two looks at trials that others have under way.
PAUSE: Final = 0.5
#: Two machines that make the tables at the same moment stand in each other's way.
OPENINGS: Final = 3
#: What a trial notes about itself in the database.
ORIGIN, IMPOSSIBLE = "fusion_bench:origin", "fusion_bench:impossible"


def shared_search(
    problem: TuningObjective,
    keep: NDArray[np.bool_],
    settings: SearchSettings,
    url: str,
    *,
    on_trial: TrialCallback | None = None,
    workers: int = 1,
    heartbeat: tuple[int, int] = (HEARTBEAT, GRACE),
) -> SearchResult:
    """Take part in a search until it is done.

    Args:
        problem: What is tuned.
        keep: Shape (Q,): the queries that may be looked at.
        settings: How; the same on every machine, or it is another search.
        url: Of the database, as SQLAlchemy reads it.
        on_trial: Called after each trial of this machine with it and its best so far.
        workers: Processes that evaluate on this machine.
        heartbeat: Seconds between two signs of life, and until none means death.

    Returns:
        All trials of all machines, the default first.

    Raises:
        ConfigError: The database cannot be reached, the sampler cannot be shared, or the default
            cannot be computed.
    """
    part = problem.subset_queries(keep)
    if (reason := part.failure_reason(part.default_params)) is not None:
        raise ConfigError(f"tune: the default cannot be computed: {reason}")
    if settings.sampler in {"grid", "brute_force"}:
        raise ConfigError(f"sampler {settings.sampler}: cannot be shared: use it without --storage")
    check_sampler(part.parameters, settings.sampler)
    started = time.monotonic()
    interrupted = False
    with (
        _reachable(url),
        _storage(url, heartbeat) as storage,
        evaluators(part, workers) as evaluate,
    ):
        guest = _Guest(part, settings, storage, evaluate, on_trial)
        try:
            guest.take_part(started)
        except KeyboardInterrupt:
            interrupted = True
        return SearchResult(guest.all_trials(), interrupted, time.monotonic() - started)


def export(study: SearchResult, problem: TuningObjective, url: str, name: str) -> int:
    """Write a finished search to an Optuna storage, all trials at once.

    Args:
        study: The search.
        problem: What was tuned.
        url: Of the database, such as ``sqlite:///study.db``; optuna-dashboard reads it.
        name: Of the study there; one of the same name is an error.

    Returns:
        How many trials were written: all of them.

    Raises:
        ConfigError: There is a study of that name, or the database cannot be reached.
    """
    import optuna

    with _reachable(url), _storage(url) as storage:
        try:
            target = optuna.create_study(storage=storage, study_name=name, direction="maximize")
        except optuna.exceptions.DuplicatedStudyError:
            raise ConfigError(
                f"export: {_shown(url)} has a study {name!r} already: remove it, or write elsewhere"
            ) from None
        target.add_trials([_frozen(trial, problem) for trial in study.trials])
    return len(study.trials)


def _frozen(trial: Trial, problem: TuningObjective) -> optuna.trial.FrozenTrial:
    """A finished trial as Optuna keeps it, with the whole configuration beside its parameters."""
    import optuna

    states = optuna.trial.TrialState
    ranges = {
        one.path: distribution_around(one, trial.params[one.path])
        for one in problem.parameters
        if one.path in trial.params
    }
    found = {path: one for path, one in ranges.items() if one is not None}
    return optuna.create_trial(
        params={path: trial.params[path] for path in found},
        distributions=found,
        value=None if trial.is_failed else trial.value,
        state=states.FAIL if trial.is_failed else states.COMPLETE,
        user_attrs={"origin": trial.origin, "number": trial.number, **_config(trial, problem)},
    )


def _config(trial: Trial, problem: TuningObjective) -> dict[str, object]:
    """The resolved system; nothing where its method refuses these values."""
    try:
        return {"config": resolved_config(problem.build_system(trial.params))}
    except FusionBenchError:
        return {}


class _Guest:
    """One machine's part in a search."""

    def __init__(
        self,
        problem: TuningObjective,
        settings: SearchSettings,
        storage: optuna.storages.RDBStorage,
        evaluate: Evaluate,
        on_trial: TrialCallback | None,
    ) -> None:
        self._problem = problem
        self._settings = settings
        self._storage = storage
        self._evaluate = evaluate
        self._on_trial = on_trial
        self._best: Trial | None = None
        value = float(evaluate([problem.default_params]).mean())
        self._default = Trial(0, problem.default_params, value, "default")
        self._study = self._joined(f"fusion_bench-{search_fingerprint(problem, settings)[:40]}")

    def take_part(self, started: float) -> None:
        """Ask, evaluate and tell until the search is done, or time is up."""
        timeout = self._settings.timeout

        def in_time() -> bool:
            return timeout is None or time.monotonic() - started < timeout

        while in_time():
            self._bury()
            done, under_way = self._counted()
            left = self._settings.trials - 1 - done
            if left <= 0:
                break
            if left <= under_way:
                time.sleep(PAUSE)  # others are at it; or they died, and will be found overdue
                continue
            self._batch(min(self._settings.batch, left - under_way))

    def all_trials(self) -> tuple[Trial, ...]:
        """The default, and what all machines found."""
        from optuna.trial import TrialState

        found: list[tuple[Params, float, TrialOrigin]] = []
        for trial in self._study.get_trials(deepcopy=False):
            origin = trial.user_attrs.get(ORIGIN, "sampler")
            params = self._problem.normalize_weights(
                round_params(trial.params, self._problem.parameters)
            )
            if trial.state == TrialState.COMPLETE and trial.value is not None:
                found.append((params, trial.value, origin))
            elif IMPOSSIBLE in trial.user_attrs:
                found.append((params, float("nan"), origin))
        return (self._default, *(Trial(n, *one) for n, one in enumerate(found, 1)))

    def _joined(self, name: str) -> optuna.Study:
        """The study of this search; who makes it puts the seeds' suggestions first."""
        import optuna

        try:
            study = optuna.create_study(
                storage=self._storage,
                study_name=name,
                sampler=optuna_sampler(self._settings),
                direction="maximize",
            )
        except optuna.exceptions.DuplicatedStudyError:
            # Machines that draw the same numbers would try the same points.
            other = optuna_sampler(self._settings.model_copy(update={"seed": _own_seed()}))
            return optuna.load_study(study_name=name, storage=self._storage, sampler=other)
        for params in self._problem.preset_params[: self._settings.trials - 1]:
            if self._problem.contains(params):
                study.enqueue_trial(dict(params), user_attrs={ORIGIN: "seed"})
        return study

    def _bury(self) -> None:
        """Give what dead machines left running to whoever asks next."""
        import optuna

        with _quiet():
            optuna.storages.fail_stale_trials(self._study)

    def _counted(self) -> tuple[int, int]:
        """How many trials are done, and how many are under way."""
        from optuna.trial import TrialState

        trials = self._study.get_trials(deepcopy=False)
        done = sum(t.state == TrialState.COMPLETE or IMPOSSIBLE in t.user_attrs for t in trials)
        return done, sum(t.state == TrialState.RUNNING for t in trials)

    def _batch(self, count: int) -> None:
        from optuna.trial import TrialState

        with _quiet():
            asked = [self._study.ask() for _ in range(count)]
            with _alive(self._storage, asked):
                raw = [suggest_params(trial, self._problem.parameters) for trial in asked]
                proposed = [self._problem.normalize_weights(params) for params in raw]
                values = self._evaluate(proposed).mean(axis=1).tolist()
            for trial, params, value in zip(asked, proposed, values, strict=True):
                if np.isnan(value):
                    trial.set_user_attr(IMPOSSIBLE, True)
                    self._study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
                else:
                    self._study.tell(trial, value, skip_if_finished=True)
                self._announce(Trial(trial.number, params, value, "sampler"))

    def _announce(self, trial: Trial) -> None:
        if self._best is None or trial.value > self._best.value:
            self._best = trial
        if self._on_trial is not None:
            self._on_trial(trial, self._best)


@contextmanager
def _alive(storage: optuna.storages.RDBStorage, trials: Sequence[optuna.Trial]) -> Iterator[None]:
    """Give signs of life for these trials while they are evaluated."""
    interval = storage.get_heartbeat_interval() or HEARTBEAT
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(interval):
            for trial in trials:
                storage.record_heartbeat(trial._trial_id)

    for trial in trials:
        storage.record_heartbeat(trial._trial_id)
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _storage(
    url: str, heartbeat: tuple[int, int] | None = None
) -> Iterator[optuna.storages.RDBStorage]:
    """Optuna's storage behind a URL, its connections closed in the end."""
    import optuna
    from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if url.startswith(("postgresql://", "postgres://", "postgresql+psycopg2://")):
        if find_spec("psycopg2") is None:
            raise MissingExtraError("psycopg2", extra="postgres", purpose="a PostgreSQL storage")
        url = f"postgresql+psycopg2://{url.partition('://')[2]}"
    left = OPENINGS
    while True:
        left -= 1
        try:
            found = _opened(url, heartbeat)
            break
        except (IntegrityError, OperationalError, ProgrammingError):
            if not left:
                raise
            time.sleep(PAUSE)
    try:
        yield found
    finally:
        found.remove_session()
        found.engine.dispose()


def _opened(url: str, heartbeat: tuple[int, int] | None) -> optuna.storages.RDBStorage:
    import optuna

    interval, grace = heartbeat or (None, None)
    with _quiet():
        retry = None
        if heartbeat:
            retry = optuna.storages.RetryHeartbeatStaleTrialCallback(max_retry=RETRIES)
        return optuna.storages.RDBStorage(
            url,
            engine_kwargs={"pool_pre_ping": True},
            heartbeat_interval=interval,
            grace_period=grace,
            heartbeat_stale_trial_callback=retry,
        )


@contextmanager
def _reachable(url: str) -> Iterator[None]:
    """What the database says, as one line without its password."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, ImportError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"storage {_shown(url)}: {first} (an address reads postgresql://user@host/database or "
            "sqlite:///file.db)"
        ) from error


def _shown(url: str) -> str:
    """An address without a password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what Optuna says of the experimental parts that are used on purpose."""
    from optuna.exceptions import ExperimentalWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        # It is: the signs of life are our own, because its loop evaluates one trial at a time.
        warnings.filterwarnings("ignore", "Heartbeat of storage is supposed to be used with")
        yield


def _own_seed() -> int:
    import secrets

    return secrets.randbits(32)
