"""Optuna's database, in which a killed process loses no trial."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from optuna.storages import RDBStorage
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial, TrialState, create_trial
from sqlalchemy import select, update
from sqlalchemy.orm import Session

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
