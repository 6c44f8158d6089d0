"""Close a campaign: its held-out queries may be looked at, and every ask gets its values."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.campaign import frozen_data
from fusion_bench.campaign.ask import AskJudgment, judge_candidate, pair_held_out
from fusion_bench.campaign.records import CampaignReport, ClosedAsk
from fusion_bench.campaign.state import CampaignPaths, CampaignState
from fusion_bench.errors import ConfigError
from fusion_bench.io.campaign_ledger import CampaignEvent, make_event
from fusion_bench.report.tuning_records import Gain
from fusion_bench.stats.intervals import betting_bound
from fusion_bench.tune.held_out import student_gain
from fusion_bench.util.formatting import Progress, ignore_progress


def close_campaign(
    paths: CampaignPaths, by: str, progress: Progress = ignore_progress
) -> CampaignReport:
    """Close a campaign for good, and compute what its asks found; a closed one is computed again.

    Args:
        paths: Where it stands.
        by: The person who closes it.
        progress: Called for each ask.

    Raises:
        ConfigError: Nobody is named.
        DataError: The ledger was edited, shortened or removed, or the data are not as frozen.
    """
    if not by.strip():
        raise ConfigError("--by: name the person who closes the campaign")
    before = paths.read_state()
    new = [text for ask in before.asks for text in ask.lists]
    dataset = frozen_data.load_whole(paths.dataset, before.plan, frozen_data.name_lists(new))
    if changes := frozen_data.find_changes(before.plan, dataset, new):
        progress(f"values are those of changed data: {changes}", 0, 1)

    def add(events: list[CampaignEvent]) -> list[CampaignEvent]:
        state = paths.find_state(events)
        closing = make_event(state.campaign, "close", by=by)
        return [] if state.closed_by else [closing]

    state = paths.append(add)
    data = frozen_data.freeze_dataset(dataset, state.plan, state.held_out)
    asks = tuple(_describe_asks(state, data, progress))
    first = data.measure_baseline(state.plan.config)
    return CampaignReport(
        status=before.describe(),
        closed_by=state.closed_by,
        overrides=tuple(f"{event.by}: {event.command}" for event in state.overrides),
        changes=changes,
        asks=asks,
        held_out=tuple(data.held_out.queries),
        baseline_values=tuple(first.held_out.tolist()),
        shipped_values=_shipped_values(state, data),
    )


def _shipped_values(state: CampaignState, data: frozen_data.FrozenData) -> tuple[float, ...]:
    if not state.ships:
        return ()
    shipped = data.measure_baseline(state.baseline_of(len(state.ships) + 1))
    return tuple(shipped.held_out.tolist())


def _describe_asks(
    state: CampaignState, data: frozen_data.FrozenData, progress: Progress
) -> Iterator[ClosedAsk]:
    for count, ask in enumerate(state.asks, 1):
        progress("computing asks", count, len(state.asks))
        number, config = ask.number or 0, dict(ask.config or {})
        phase, system = state.phases[number], frozen_data.rebuild_system(config)
        baseline = data.measure_baseline(state.baseline_of(phase))
        values = data.measure_system(system)
        judgment = judge_candidate(
            data, system, values, baseline, rules=state.plan.rules, phase=phase
        )
        tuning = None
        if values.tuning is not None and baseline.tuning is not None:
            tuning = float((values.tuning - baseline.tuning).mean())
        is_known = len(values.held_out) and len(baseline.held_out)
        gain = _measure_gain(data, values, baseline, judgment) if is_known else None
        answer = state.answers.get(number)
        yield ClosedAsk(
            number=number,
            date=ask.date,
            phase=phase,
            answer=answer,
            config=dict(config),
            lists=ask.lists,
            tuning_gain=tuning,
            is_screened=judgment.is_screened,
            is_contradicted=answer == "ship" and not judgment.ships,
            gain=gain,
            log_e_value=judgment.test.log_e_value,
        )


def _measure_gain(
    data: frozen_data.FrozenData,
    candidate: frozen_data.SystemValues,
    baseline: frozen_data.SystemValues,
    judgment: AskJudgment,
) -> Gain:
    """The held-out gain; with bounded tails its interval is the betting one, at the ask's share."""
    share = judgment.test.share
    pair = pair_held_out(data, candidate, baseline)
    gain = student_gain(pair, alpha=2 * share)
    if judgment.test.tails == "t":
        return gain
    low, high = (
        sign * betting_bound(sign * pair.difference, pair.groups, alpha=share) for sign in (1, -1)
    )
    return gain.model_copy(update={"low": low, "high": high})
