"""A process that ends between two transactions loses no preset and no trial."""

from collections.abc import Sequence
from typing import Any

import pytest
from optuna.trial import TrialState
from sqlalchemy import Connection, Engine, event

from fusion_bench.config.parameters import Params
from fusion_bench.data.ordering import FloatArray
from fusion_bench.tune import shared_study
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.shared_study import search_shared_study
from tests.attacks.killed_searches import age_heartbeats, check_trials
from tests.tune.test_shared_study import KEEP, OBJECTIVE, load_study, settings

#: Trials of a search that are enough for the presets.
TRIALS = 5
PRESETS = [dict(params) for params in filter(OBJECTIVE.contains, OBJECTIVE.preset_params)]


class Ended(BaseException):
    """The process is gone: nothing handles this."""


def search_until(url: str, statement: str, transactions: int) -> bool:
    """Whether a process that ends had got that far.

    Args:
        url: Of the database.
        statement: How the first statement begins from which transactions are counted.
        transactions: Those that are committed after it; the process ends before the next one is.
    """
    count = -1

    def begin(_: Connection, __: object, sql: str, *___: object) -> None:
        nonlocal count
        if count < 0 and sql.startswith(statement):
            count = 0

    def end(_: Connection) -> None:
        nonlocal count
        if count >= transactions:
            raise Ended
        count += count >= 0

    listeners: dict[str, Any] = {"before_cursor_execute": begin, "commit": end}
    for name, listener in listeners.items():
        event.listen(Engine, name, listener)
    try:
        search_shared_study(OBJECTIVE, KEEP, settings(TRIALS), url)
    except Ended:
        return True
    finally:
        for name, listener in listeners.items():
            event.remove(Engine, name, listener)
    return False


def search_and_die(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process ends while it evaluates its first trial, long ago."""
    evaluate = TuningObjective.evaluate_params

    def die(self: TuningObjective, trials: Sequence[Params]) -> FloatArray:
        if dict(trials[0]) == PRESETS[0]:
            raise Ended
        return evaluate(self, trials)

    with monkeypatch.context() as context:
        context.setattr(TuningObjective, "evaluate_params", die)
        with pytest.raises(Ended):
            search_shared_study(OBJECTIVE, KEEP, settings(TRIALS), url)
    age_heartbeats(url)


@pytest.mark.parametrize("transactions", [0, 1, 2])
def test_no_preset_is_lost_where_the_next_process_ends(
    transactions: int, sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the stale trial fails, and when it has, before its repetition is queued."""
    search_and_die(sqlite, monkeypatch)
    assert search_until(sqlite, "UPDATE trials SET state", transactions)
    age_heartbeats(sqlite)
    search_shared_study(OBJECTIVE, KEEP, settings(TRIALS), sqlite)
    check_trials(sqlite)


@pytest.mark.parametrize("transactions", [1, 2, 3])
def test_no_preset_is_lost_where_the_first_process_ends(transactions: int, sqlite: str) -> None:
    """When there is a study, before all presets are queued."""
    assert search_until(sqlite, "INSERT INTO studies", transactions)
    search_shared_study(OBJECTIVE, KEEP, settings(TRIALS), sqlite)
    check_trials(sqlite)


def test_a_trial_that_an_error_or_ctrl_c_ended_is_repeated(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate = TuningObjective.evaluate_params

    def interrupt(self: TuningObjective, trials: Sequence[Params]) -> FloatArray:
        if dict(trials[0]) == PRESETS[0]:
            raise KeyboardInterrupt
        return evaluate(self, trials)

    with monkeypatch.context() as context:
        context.setattr(TuningObjective, "evaluate_params", interrupt)
        assert search_shared_study(OBJECTIVE, KEEP, settings(TRIALS), sqlite).interrupted
    search_shared_study(OBJECTIVE, KEEP, settings(TRIALS), sqlite)
    check_trials(sqlite)


def test_a_trial_that_ends_every_process_is_given_up(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_study, "MOST_REPETITIONS", 1)
    for _ in range(2):
        search_and_die(sqlite, monkeypatch)
    result = search_shared_study(OBJECTIVE, KEEP, settings(TRIALS), sqlite)
    assert PRESETS[0] not in [trial.params for trial in result.trials]


def test_a_trial_that_something_else_failed_is_queued_at_the_next_start(sqlite: str) -> None:
    """A dashboard, or an earlier version that was killed before it queued the repetition."""
    search_shared_study(OBJECTIVE, KEEP, settings(2), sqlite)
    study = load_study(sqlite)
    study.enqueue_trial(PRESETS[1])
    study.tell(study.ask(), state=TrialState.FAIL)
    result = search_shared_study(OBJECTIVE, KEEP, settings(TRIALS), sqlite)
    assert PRESETS[1] in [trial.params for trial in result.trials]
