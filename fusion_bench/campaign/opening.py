"""Open a campaign: freeze the held-out queries, the baseline, the measure, the asks."""

from __future__ import annotations

import math
import os
import re
import secrets
import statistics
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fusion_bench.campaign import frozen_data
from fusion_bench.campaign.decision import GOOD_GAIN, MOST_GAIN, detectable_gain, phase_share
from fusion_bench.campaign.records import (
    CampaignFile,
    CampaignPlan,
    CampaignRules,
    CampaignStatus,
    PhasePower,
)
from fusion_bench.campaign.state import (
    CAMPAIGN_FILE,
    LAST_LINE,
    CampaignPaths,
    list_campaigns,
)
from fusion_bench.checks.query_warnings import find_near_duplicates
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.query_splits import QuerySplit, split_queries
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.experiment.system import System, collapse_alike, merge_rules
from fusion_bench.io.campaign_ledger import (
    CampaignEvent,
    HeldOutDigests,
    append_events,
    check_committed,
    make_event,
    read_events,
)
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.fingerprints import judgment_digests, query_digest, query_digests
from fusion_bench.io.held_out import LEDGER_NAME, HeldOut, list_open_campaigns, read_ledgers
from fusion_bench.io.looks import LEDGER_NAME as LOOKS_NAME
from fusion_bench.io.looks import read_committed
from fusion_bench.io.outputs import write_outputs
from fusion_bench.measures import Measure
from fusion_bench.stats.inference import MIN_UNITS
from fusion_bench.stats.intervals import paired_difference
from fusion_bench.util.files import (
    make_output_folder,
    name_experiment,
    read_regular_text,
    require_folder,
    resolve_path,
    show_path,
    write_atomic,
)
from fusion_bench.util.formatting import format_number, pluralize

#: Random bytes of a campaign's id.
ID_BYTES = 8
#: What every stored record begins with.
RECORD = re.compile(r'\s*\{\s*"format":\s*"fusion-bench-')
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
#: Numbers of asks, and how many times as many groups, that a message may name.
COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000)
GROWTHS = [1.1**power for power in range(1, 60)]
#: Most files that a message names.
MOST_NAMED = 3


def open_campaign(
    experiment: Experiment,
    source: Source,
    path: Path,
    out: Path,
    rules: CampaignRules,
    *,
    held_out: float | None = None,
    accepts_no_guarantee: bool = False,
    accepts_weakness: bool = False,
) -> CampaignStatus:
    """Freeze everything that an ask depends on, and write it into the ledger beside the dataset.

    Args:
        experiment: Its baseline is the first system to beat; its first measure decides.
        source: Where it was read from.
        path: The ``dataset.yaml``.
        out: Folder of the campaign.
        rules: What is declared.
        held_out: Share of the queries that decides; None = as ``tune.held_out`` says, else half.
            A dataset's own splits win.
        accepts_no_guarantee: Open it though somebody may have looked at the queries.
        accepts_weakness: Open it though it finds no gain of .05 or less.

    Returns:
        How it stands, with what each phase can find.

    Raises:
        ConfigError: The folder holds a campaign, the queries were looked at, groups are refused,
            too few queries, only great gains are found, or a measure without bounds.
        FusionBenchError: A file breaks a rule, or cannot be written.
    """
    _refuse_campaign(out)
    systems, ledger = experiment.systems.values(), path.parent / LEDGER_NAME
    parents = merge_rules(systems).parents
    frozen_data.refuse_other_parents(systems, parents, "collapse")
    dataset = frozen_data.load_whole(path).with_parents(parents)
    measure = _check(experiment, source, dataset, rules)
    _refuse_links(path, dataset)
    check_committed(ledger, read_events(ledger))
    files = [path, *dataset.spec.list_paths(path.parent)]
    events = [event for _, known in read_ledgers(files) for event in known]
    runs, split = _split(experiment, dataset, held_out, events)
    chosen, digests = _digest_held_out(runs, split)
    _refuse_known(ledger, digests, events)
    looks = _find_earlier_looks(source.path, path, dataset.name, chosen, digests, events)
    if looks and not accepts_no_guarantee:
        raise ConfigError(
            f"{path}: the held-out queries were looked at before ({'; '.join(looks)}), so that no "
            "level holds for them: add newly judged queries in a split 'test', with the old ones "
            "in 'dev', or open the campaign without its guarantee by --no-guarantee"
        )
    plan = CampaignPlan(
        experiment=name_experiment(source.path),
        dataset=dataset.name,
        rules=rules,
        measure=measure.name,
        ties=experiment.ties,
        baseline=experiment.baseline,
        config=experiment.systems[experiment.baseline].resolved_config,
        runs=tuple(dataset.runs),
        rerankers=tuple(dataset.rerankers),
        groups=dataset.found_groups,
        tuning=query_digests(runs.queries[q] for q in np.flatnonzero(split.tune)),
        parents=parents,
        contents=dict(dataset.contents.parts),
        versions=frozen_data.code_versions(),
        no_guarantee="; ".join(looks),
    )
    data = frozen_data.freeze_dataset(dataset, plan, digests)
    _check_frozen(data, plan)
    found = _FoundGains([*_list_differences(experiment, data)], data, rules)
    weakness = found.describe_weakness()
    if weakness and not accepts_weakness:
        raise ConfigError(
            f"{dataset.name}: {weakness}: declare fewer asks, judge more queries, use "
            "'fusion-bench tune', or add --allow-weak"
        )
    frozen = plan.model_copy(update={"weakness": weakness}).model_dump(mode="json")
    event = make_event(secrets.token_hex(ID_BYTES), "open", held_out=digests, plan=frozen)
    _write(path, out, event)
    return list_campaigns([event])[event.campaign].describe(found.describe_phases())


def _check(
    experiment: Experiment, source: Source, dataset: Dataset, rules: CampaignRules
) -> Measure:
    """Refuse what no campaign can rest on; returns the measure that decides."""
    measure = experiment.parse_measures(dataset.spec.binary_relevance, source)[0]
    frozen_data.refuse_own_code(experiment.systems[experiment.baseline], "the campaign", measure)
    if rules.ships > rules.asks:
        raise ConfigError(f"--ships: at most as many as --asks ({rules.asks}), not {rules.ships}")
    if rules.tails == "bounded" and not measure.is_bounded:
        raise ConfigError(
            f"{measure.name}: its values have no bounds, and the guarantee needs values from 0 to "
            "1: name another first measure, or open the campaign with --tails t"
        )
    if dataset.spec.grouping == "none":
        raise ConfigError(
            f"{dataset.name}: 'groups: none' is refused in a campaign: a tuning query that is a "
            "copy of a held-out one shows its answer; delete the key, or name a file of groups"
        )
    duplicates = find_near_duplicates(dataset)
    if duplicates is not None and duplicates.withholds:
        raise ConfigError(
            f"{dataset.name}: so many queries depend on each other without a common group that "
            "nothing could ship: write 'groups: auto' in its dataset.yaml, or name a file of groups"
        )
    experiment.check_datasets(dataset.spec.run_roles, tuple(dataset.spec.rerank), source)
    return measure


def _refuse_links(path: Path, dataset: Dataset) -> None:
    """Refuse judgments in another folder, where no ledger would hide them."""
    judged = filter(None, (dataset.spec.qrels, *dataset.spec.judges.values()))
    for file in judged:
        place = resolve_path(path.parent / file.path)
        if not place.is_relative_to(resolve_path(path.parent)):
            raise ConfigError(
                f"{path}: {file.path!r} is a link to {place}, which others may read, and no "
                "campaign would hide it there: copy the file into the dataset's folder"
            )


def _split(
    experiment: Experiment,
    dataset: Dataset,
    held_out: float | None,
    events: Sequence[CampaignEvent],
) -> tuple[AlignedRuns, QuerySplit]:
    """The judged queries that no open campaign holds out, and their split."""
    runs = dataset.align_repeats([*dataset.runs], ties=experiment.ties).common_repeats()
    taken = HeldOut.match(
        list_open_campaigns(events), dataset.qrels, runs.queries, dataset.queries
    ).queries
    earlier = {event.campaign: event.held_out for event in events if event.held_out is not None}
    ids = {digest for each in earlier.values() for digest in each.queries}
    others = {name: each.model_copy(update={"queries": ()}) for name, each in earlier.items()}
    matched = HeldOut.match(others, dataset.qrels, records=dataset.queries).queries
    copies = {query for query in matched if query_digest(query) not in ids}
    free = np.array([query not in taken and query not in copies for query in runs.queries])
    if not free.any():
        raise ConfigError(
            f"{dataset.name}: campaigns hold out every query, or held out one of the same "
            "judgments: add newly judged queries"
        )
    runs = runs if free.all() else runs.subset(free)
    tuning = experiment.tune or TuneSettings(system=experiment.baseline)
    split = split_queries(
        runs,
        dataset.queries,
        split_seed=tuning.split_seed,
        held_out=tuning.held_out if held_out is None else held_out,
    )
    if held_out is not None and split.split_seed is None:
        raise ConfigError(
            "--held-out: the dataset has splits of its own, which decide: leave it out"
        )
    groups = {runs.groups[q] for q in np.flatnonzero(split.held_out)}
    if len(groups) < MIN_UNITS:
        raise ConfigError(
            f"{dataset.name}: {pluralize(len(groups), 'group')} of queries would be held out, and "
            f"fewer than {MIN_UNITS} can never ship anything: judge more queries, or raise "
            "--held-out"
        )
    return runs, split


def _digest_held_out(runs: AlignedRuns, split: QuerySplit) -> tuple[list[str], HeldOutDigests]:
    """The held-out queries, and what tells whether others are the same."""
    index = np.flatnonzero(split.held_out)
    queries = [runs.queries[q] for q in index]
    return queries, HeldOutDigests(
        queries=query_digests(queries),
        judgments=judgment_digests(runs.qrels, queries),
        groups=query_digests({runs.groups[q] for q in index}),
    )


def _refuse_known(path: Path, held_out: HeldOutDigests, events: Sequence[CampaignEvent]) -> None:
    """Refuse queries and groups that another campaign holds out, open or closed.

    Args:
        path: The ledger.
        held_out: The queries of the new campaign.
        events: Of the ledger.

    Raises:
        ConfigError: Names the campaign.
    """
    kinds = ("queries", "judgments", "groups")
    for event in events:
        other = event.held_out
        if other is not None and any(
            not set(getattr(held_out, kind)).isdisjoint(getattr(other, kind)) for kind in kinds
        ):
            raise ConfigError(
                f"{path}: campaign {event.campaign} of {event.date[:10]} holds out some of these "
                "queries or their groups, and no query is held out twice: add newly judged queries "
                "in a split 'test', with the old ones in 'dev'"
            )


def _find_earlier_looks(
    experiment: Path,
    dataset: Path,
    name: str,
    queries: Collection[str],
    held_out: HeldOutDigests,
    events: Sequence[CampaignEvent],
) -> list[str]:
    """The ledger's lines, reports, baselines and campaigns that tell of a held-out query.

    Args:
        experiment: Its file; reports are looked for beside its folder, and in the working folder.
        dataset: The ``dataset.yaml``, beside which the ledger stands.
        name: Of the dataset.
        queries: Ids of the held-out queries.
        held_out: Their digests.
        events: Of the ledgers; a campaign tells everything about its tuning queries.
    """
    ledger = dataset.parent / LOOKS_NAME
    known = {digest for line in read_committed(ledger) for digest in line.contents}
    pairs = (held_out.queries, held_out.judgments)
    seen = max(len(known.intersection(digests)) for digests in pairs)
    lines = f"{show_path(ledger)}: values of {pluralize(seen, 'held-out query')} were shown"
    found = [lines] if seen else []
    found += [
        f"they are tuning queries of campaign {campaign}"
        for campaign, state in list_campaigns(events).items()
        if not set(state.plan.tuning).isdisjoint(held_out.queries)
    ]
    folders = dict.fromkeys([experiment.parent.parent / "reports", Path("reports")])
    files = {path.resolve() for folder in folders for path in folder.rglob("*.json")}
    records = [show_path(path) for path in sorted(files) if _holds(path, name, set(queries))]
    more = len(records) - MOST_NAMED
    return [*found, *records[:MOST_NAMED], *([f"and {more} more records"] if more > 0 else [])]


def _holds(path: Path, name: str, queries: Collection[str]) -> bool:
    """Whether a stored record is about the dataset, and names one of the queries."""
    with suppress(OSError, ValueError):
        text = read_regular_text(path)
        if RECORD.match(text):
            texts = {match[1] for match in TEXT.finditer(text)}
            return name in texts and not texts.isdisjoint(queries)
    return False


def _check_frozen(data: frozen_data.FrozenData, plan: CampaignPlan) -> None:
    """Refuse judgments that nobody has declared, and a baseline that is none.

    It cannot be computed, or is easy to beat as its list is degraded.

    Raises:
        ConfigError: Says why.
    """
    if data.kind == "undeclared":
        raise ConfigError(
            f"{plan.dataset}: whether a ship counts depends on what unjudged documents are, and no "
            "document is judged not relevant: write 'judgments: complete', 'sparse' or 'pooled' in "
            "its dataset.yaml"
        )
    for name in sorted(frozen_data.rebuild_system(plan.config).reranker_names):
        if (reason := data.dataset.degradation(name)) is not None:
            raise ConfigError(f"baseline {plan.baseline!r}: {reason}")
    data.refuse_other_kinds(frozen_data.rebuild_system(plan.config, plan.baseline), "baseline")
    values = data.measure_baseline(plan.config)
    if values.tuning is None or not len(values.held_out):
        raise ConfigError(f"baseline {plan.baseline!r}: {values.error or 'cannot be computed'}")


@dataclass(frozen=True, eq=False)
class _FoundGains:
    """What a campaign can find, from differences on the tuning queries.

    They are those of the other systems of the experiment, or of the single lists where there is
    none; the median over them counts.

    Attributes:
        differences: (T,) each.
        data: What is frozen.
        rules: What is declared.
    """

    differences: Sequence[FloatArray]
    data: frozen_data.FrozenData
    rules: CampaignRules

    def find_gain(self, phase: int = 1, *, asks: int | None = None, growth: float = 1) -> float:
        """The smallest gain that ships with power .8 in a phase; inf = none up to 1 does.

        Args:
            phase: From 1.
            asks: As if so many were declared; None = as they are.
            growth: As if the held-out queries and groups were so many times as many.
        """
        rules, data = self.rules, self.data
        count = rules.asks if asks is None else asks
        ships = min(rules.ships, count)
        gains = [
            detectable_gain(
                difference,
                data.tuning_groups,
                queries=round(growth * len(data.held_out.queries)),
                count=round(growth * self.groups),
                share=phase_share(phase, ships=ships, asks=count, level=rules.level),
                tails=rules.tails,
            )
            for difference in self.differences
        ]
        known = [math.inf if gain is None else gain for gain in gains]
        return statistics.median_high(known) if known else math.inf

    @property
    def groups(self) -> int:
        """How many groups are held out."""
        return len({*self.data.held_out.groups})

    def describe_phases(self) -> list[PhasePower]:
        """What each phase can find."""
        rules, phases = self.rules, range(1, self.rules.ships + 1)
        return [
            PhasePower(
                phase=phase,
                share=phase_share(phase, ships=rules.ships, asks=rules.asks, level=rules.level),
                detectable_gain=gain if math.isfinite(gain := self.find_gain(phase)) else None,
            )
            for phase in phases
        ]

    def describe_weakness(self) -> str:
        """That only great gains are found, with what would do; empty = small ones are.

        Nothing is said where no two systems differ.
        """
        gain = self.find_gain()
        if gain <= MOST_GAIN or not self.differences:
            return ""
        shown = f"below {format_number(gain)}" if math.isfinite(gain) else "up to 1"
        remedies = []
        for wanted in (MOST_GAIN, GOOD_GAIN):
            counts = (count for count in COUNTS if count < self.rules.asks)
            asks = max((count for count in counts if self._finds(wanted, count)), default=None)
            growth = next((each for each in GROWTHS if self._finds(wanted, None, each)), None)
            few = "" if asks is None else f"{pluralize(asks, 'ask')} or "
            groups = "more" if growth is None else f"about {round_up(growth * self.groups):,}"
            remedies.append(f"{wanted:g} needs {few}{groups} held-out groups")
        return (
            f"With {self.rules.asks:,} asks and {self.groups:,} held-out groups a gain {shown} "
            f"mostly does not ship ({'; '.join(remedies)})"
        )

    def _finds(self, gain: float, asks: int | None, growth: float = 1) -> bool:
        return self.find_gain(asks=asks, growth=growth) <= gain


def round_up(count: float) -> int:
    """A count with two digits, not below it."""
    step: int = 10 ** max(0, math.floor(math.log10(count)) - 1)
    return math.ceil(count / step) * step


def _list_differences(experiment: Experiment, data: frozen_data.FrozenData) -> Iterator[FloatArray]:
    """(T,) each: another system − the baseline, where it can be computed and differs."""
    config = experiment.systems[experiment.baseline].resolved_config
    baseline = data.measure_baseline(config).tuning
    others = [s for name, s in experiment.systems.items() if name != experiment.baseline]
    systems = experiment.systems.values()
    alone = [collapse_alike(System(name, [name]), systems) for name in data.dataset.runs]
    for system in others or alone:
        values, _ = data.evaluate(system, data.tuning)
        if values is not None and baseline is not None:
            difference = paired_difference(values, baseline)
            if difference.any():
                yield difference


def _refuse_campaign(out: Path) -> None:
    """Refuse a folder that holds a campaign; a file whose ledger has no line of it holds none.

    ``open`` that is killed before it writes the ledger leaves such a file.

    Raises:
        ConfigError: The folder holds a campaign or another file of its name, or is a file.
    """
    require_folder(out, "--out")
    file = out / CAMPAIGN_FILE
    if not file.exists():
        return
    try:
        paths = CampaignPaths.read(out)
        is_taken = _is_open(paths.ledger, paths.campaign) or (out / LAST_LINE).exists()
    except DataError:
        is_taken = True
    if is_taken:
        raise ConfigError(f"--out {out}: {file} exists: name another folder")


def _write(path: Path, out: Path, event: CampaignEvent) -> None:
    """Write the file of the campaign's folder, and last the line of the ledger, which opens it.

    Raises:
        ConfigError: Another campaign took queries of it in the meantime, or a file is in the way.
        FusionBenchError: A file cannot be written; then no campaign is open.
    """
    ledger = path.parent / LEDGER_NAME
    folder = make_output_folder(out, committed=[out / CAMPAIGN_FILE])
    dataset = os.path.relpath(resolve_path(path), resolve_path(folder))
    file = CampaignFile(campaign=event.campaign, dataset=dataset)
    write_outputs(folder, {CAMPAIGN_FILE: f"{file.model_dump_json(indent=1)}\n".encode()})
    hidden = folder / ".gitignore"
    if not hidden.exists():
        write_atomic(hidden, f".*\n!{hidden.name}\n".encode())

    def add(events: list[CampaignEvent]) -> list[CampaignEvent]:
        if event.held_out is not None:
            _refuse_known(ledger, event.held_out, events)
        return [event]

    try:
        append_events(ledger, add)
    except BaseException:
        if not _is_open(ledger, event.campaign):
            (folder / CAMPAIGN_FILE).unlink(missing_ok=True)
        raise


def _is_open(ledger: Path, campaign: str) -> bool:
    """Whether a ledger has a line of a campaign."""
    return any(event.campaign == campaign for event in read_events(ledger))
