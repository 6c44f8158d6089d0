"""How a campaign stands, from the events of its ledger."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from fusion_bench.campaign.decision import Tails
from fusion_bench.campaign.records import CampaignFile, CampaignPlan, CampaignStatus, PhasePower
from fusion_bench.config.json_records import read_stored
from fusion_bench.errors import DataError
from fusion_bench.io.campaign_ledger import (
    CampaignEvent,
    HeldOutDigests,
    append_events,
    check_committed,
    read_events,
)
from fusion_bench.io.held_out import LEDGER_NAME
from fusion_bench.util.files import explain_error, read_regular_text, resolve_path, write_atomic

#: The file of a campaign's folder.
CAMPAIGN_FILE: Final = "campaign.json"
#: Names the last line that an ask wrote into the ledger, so that a ledger without it is noticed.
LAST_LINE: Final = ".last-line"
#: When the level of a campaign holds.
CONDITION: Final[Mapping[Tails, str]] = {
    "bounded": "whatever is proposed",
    "t": "for differences that are not skewed",
}
#: What every level rests on: ledgers have what commands showed, and not what else somebody saw.
UNSEEN: Final = "if nobody has seen values of the held-out queries"
#: Why an override ended the guarantee.
OVERRIDDEN: Final = "held-out queries were shown"


@dataclass(frozen=True)
class CampaignState:
    """One campaign.

    Attributes:
        campaign: Its id.
        plan: What it froze.
        held_out: Which queries decide.
        events: The later ones of this campaign, in the order of the ledger.
    """

    campaign: str
    plan: CampaignPlan
    held_out: HeldOutDigests
    events: tuple[CampaignEvent, ...]

    def _of_kind(self, kind: str) -> tuple[CampaignEvent, ...]:
        return tuple(event for event in self.events if event.event == kind)

    @cached_property
    def asks(self) -> tuple[CampaignEvent, ...]:
        """The asks that were counted, in their order."""
        return self._of_kind("ask")

    @cached_property
    def answers(self) -> Mapping[int, Literal["ship", "keep"]]:
        """Number of an ask → what it was told."""
        asked = {ask.number for ask in self.asks}
        given = ((event.number, event.answer) for event in self.events if event.number in asked)
        return {number: answer for number, answer in given if number and answer}

    @property
    def ships(self) -> tuple[int, ...]:
        """Numbers of the asks that shipped."""
        return tuple(number for number, answer in self.answers.items() if answer == "ship")

    @property
    def shipped_lists(self) -> tuple[str, ...]:
        """The new lists that baselines of later phases read, each with its digest."""
        shipped = {*self.ships}
        return tuple(text for ask in self.asks if ask.number in shipped for text in ask.lists)

    @cached_property
    def phases(self) -> Mapping[int | None, int]:
        """Number of an ask → its phase: one more than the ships before it was counted."""
        phase, phases = 1, {}
        for event in self.events:
            if event.event == "ask":
                phases[event.number] = phase
            phase += event.answer == "ship"
        return phases

    def baseline_of(self, phase: int) -> dict[str, Any]:
        """The configuration to beat in a phase."""
        if phase == 1:
            return self.plan.config
        shipped = self.ships[phase - 2]
        return next(dict(ask.config or {}) for ask in self.asks if ask.number == shipped)

    @property
    def phase(self) -> int:
        """The phase of the next ask; after the last ship, the last one."""
        return min(len(self.ships) + 1, self.plan.rules.ships)

    @property
    def asks_left(self) -> int:
        """How many candidates may still be tested."""
        return 0 if self.closed_reason else self.plan.rules.asks - len(self.asks)

    @property
    def closed_by(self) -> str:
        """The person who closed it, so that its held-out queries may be looked at; or empty."""
        return next((event.by or "" for event in self._of_kind("close")), "")

    @property
    def overrides(self) -> tuple[CampaignEvent, ...]:
        """The events of people who looked at held-out queries while it was open."""
        return self._of_kind("override")

    @property
    def closed_reason(self) -> str:
        """Why no ask is answered any more; empty = they are, while some are left."""
        if self.closed_by:
            return f"it was closed by {self.closed_by}"
        if len(self.ships) == self.plan.rules.ships:
            count = self.plan.rules.ships
            return f"all {count} declared ships are made" if count > 1 else "its one ship is made"
        return ""

    @property
    def no_guarantee(self) -> str:
        """Why the level does not hold; empty = it does."""
        shown = [f"{OVERRIDDEN} to {event.by}" for event in self.overrides]
        return "; ".join(dict.fromkeys([*filter(None, [self.plan.no_guarantee]), *shown]))

    @property
    def guarantee(self) -> str:
        """What its level is worth, in one sentence."""
        weakness = f" {self.plan.weakness}." if self.plan.weakness else ""
        if self.no_guarantee:
            return f"No guarantee: {self.no_guarantee}.{weakness}"
        rules = self.plan.rules
        promise = f"At most {100 * rules.level:.3g} % of all campaigns ship what gains nothing"
        return f"{promise}: the level holds {CONDITION[rules.tails]}, {UNSEEN}.{weakness}"

    def find_ask(self, config: Mapping[str, Any], lists: Sequence[str]) -> CampaignEvent | None:
        """The ask of the same configuration over the same lists; None = there is none."""
        wanted = json.loads(json.dumps(config)), tuple(lists)  # as a ledger has it; 60 is 60.0
        return next((ask for ask in self.asks if (ask.config, ask.lists) == wanted), None)

    def describe(self, phases: Sequence[PhasePower] = ()) -> CampaignStatus:
        """The campaign's state as a record."""
        return CampaignStatus(
            campaign=self.campaign,
            experiment=self.plan.experiment,
            dataset=self.plan.dataset,
            measure=self.plan.measure,
            rules=self.plan.rules,
            tuning_queries=len(self.plan.tuning),
            held_out_queries=len(self.held_out.queries),
            held_out_groups=len(self.held_out.groups),
            baseline=self.baseline_of(self.phase),
            asked=len(self.asks),
            asks_left=self.asks_left,
            ships=self.ships,
            phase=self.phase,
            phases=tuple(phases),
            is_closed=bool(self.closed_reason),
            guarantee=self.guarantee,
            no_guarantee=self.no_guarantee,
        )


def list_campaigns(events: Sequence[CampaignEvent]) -> dict[str, CampaignState]:
    """The campaigns of a ledger by id, in the order in which they were opened."""
    return {
        event.campaign: CampaignState(
            event.campaign,
            CampaignPlan.model_validate(event.plan),
            event.held_out,
            tuple(e for e in events if e.campaign == event.campaign and e.event != "open"),
        )
        for event in events
        if event.held_out is not None
    }


@dataclass(frozen=True)
class CampaignPaths:
    """Where a campaign stands.

    Attributes:
        folder: Of its file.
        campaign: Its id.
        dataset: The ``dataset.yaml``.
    """

    folder: Path
    campaign: str
    dataset: Path

    @classmethod
    def read(cls, given: Path) -> CampaignPaths:
        """Read the file of a campaign, or that of its folder.

        Raises:
            DataError: There is none, or it breaks a rule.
        """
        path = given / CAMPAIGN_FILE if given.is_dir() else given
        remedy = "name the folder that 'fusion-bench campaign open' wrote"
        record = read_stored(path, CampaignFile, what="campaign", remedy=remedy)
        # Links to the dataset stay: git is asked about what they replaced, too.
        dataset = Path(os.path.abspath(resolve_path(path.parent) / record.dataset))  # noqa: PTH100
        if not dataset.exists():
            raise DataError(
                f"{path}: there is no {dataset}, its dataset: move the folder back, or correct "
                "'dataset', which is a path from this folder"
            )
        return cls(path.parent, record.campaign, dataset)

    @property
    def ledger(self) -> Path:
        """The ledger beside the dataset."""
        return self.dataset.parent / LEDGER_NAME

    def read_state(self) -> CampaignState:
        """Read the ledger.

        Raises:
            DataError: It was edited, shortened or removed.
        """
        last = None
        try:  # before the ledger, which another ask may lengthen
            last = read_regular_text(self.folder / LAST_LINE).strip()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise DataError(
                f"{self.folder / LAST_LINE}: cannot be read: {explain_error(error)}: restore it, "
                "for example from version control"
            ) from None
        events = read_events(self.ledger)
        check_committed(self.ledger, events)
        lines = (f"{event.line} {event.digest}" for event in reversed(events))
        if last is not None and last not in lines:
            raise DataError(
                f"{self.ledger}: no line matches {self.folder / LAST_LINE} ({last}): restore "
                "the ledger, for example from version control; without it asks are miscounted"
            )
        return self.find_state(events)

    def append(self, make: Callable[[list[CampaignEvent]], list[CampaignEvent]]) -> CampaignState:
        """Add events to the ledger, as ``append_events`` does; how the campaign stands then.

        Raises:
            DataError: The ledger was edited or removed.
            FusionBenchError: A file cannot be written.
        """
        events = append_events(self.ledger, make)
        last = f"{events[-1].line} {events[-1].digest}\n"
        write_atomic(self.folder / LAST_LINE, last.encode())
        return self.find_state(events)

    def find_state(self, events: Sequence[CampaignEvent]) -> CampaignState:
        """The campaign among the events of its ledger.

        Raises:
            DataError: It is not there.
        """
        campaigns = list_campaigns([event for event in events if event.campaign == self.campaign])
        if self.campaign not in campaigns:
            raise DataError(
                f"{self.ledger}: nothing is known of campaign {self.campaign}: restore the ledger, "
                "for example from version control; without it asks are miscounted"
            )
        return campaigns[self.campaign]
