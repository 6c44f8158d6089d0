"""Optuna's database, in which every trial that runs has a heartbeat."""

from __future__ import annotations

from collections.abc import Sequence

from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState, create_trial


class HeartbeatStorage(RDBStorage):
    """Optuna's storage, in which no trial runs without a heartbeat.

    Optuna starts a trial first, and its heartbeat later. A process that is killed in between would
    leave a trial that nobody takes up again.
    """

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        """Set a trial's state, after its heartbeat where it starts."""
        if state == TrialState.RUNNING:
            self.record_heartbeat(trial_id)
        return super().set_trial_state_values(trial_id, state, values)

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
