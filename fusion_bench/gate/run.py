"""The gate from end to end: a candidate held to its baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from fusion_bench.checks.collection_warnings import join_collections
from fusion_bench.checks.query_warnings import count_synthetic
from fusion_bench.config.models import parse_model
from fusion_bench.data.ordering import NOISE
from fusion_bench.errors import DataError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, find_task_warnings
from fusion_bench.experiment.system import System
from fusion_bench.gate import comparison
from fusion_bench.gate.baseline import (
    Baseline,
    CollectionBaseline,
    LedgerLine,
    ListChange,
)
from fusion_bench.gate.baseline_files import (
    CANDIDATES,
    CheckedCandidate,
    append_candidate,
    candidates_path,
    make_candidate,
    read_baseline,
    update_command,
)
from fusion_bench.gate.checks import ComparedCollection
from fusion_bench.gate.comparability import find_incompatibilities, find_list_changes
from fusion_bench.gate.inputs import (
    GateInputs,
    describe_collection,
    find_stopping_obstacles,
    find_unreachable_limits,
    find_unusable_lists,
    lint_candidate,
    list_held_out,
    warn_of_looks,
)
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.verdict import find_blocking
from fusion_bench.util.files import lock_folder, name_experiment, read_committed, show_path
from fusion_bench.util.formatting import pluralize


def run_gate(inputs: GateInputs, baseline: Path, base: str | None = None) -> GateVerdict:
    """Check an experiment's candidate for regressions against its baseline.

    Args:
        inputs: The experiment, and where its data is.
        baseline: File of the baseline.
        base: The commit that the change starts from, whose baseline is trusted; None = not known.

    Returns:
        The verdict; where the two cannot be compared, ``refusals`` says why.

    Raises:
        FusionBenchError: The experiment, its data or the baseline's file breaks a rule, or the
            candidates cannot be counted, or git knows no such commit.
    """
    policy, candidate, path = inputs.policy, inputs.candidate, inputs.source.path
    verdict = GateVerdict(
        experiment=name_experiment(path),
        experiment_file=show_path(path),
        overrides=inputs.source.override_texts,
        baseline=str(baseline),
        system=candidate.name,
        blocking=find_blocking(policy),
        runs=policy.runs,
        policy_notes=policy.ended_keys,
        v2_enabled=inputs.experiment.v2_enabled,
    )
    committed = read_baseline(baseline, path)
    if committed is None:
        missing = f"no baseline at {baseline}: write and commit: {update_command(path, baseline)}"
        return verdict.model_copy(update={"refusals": (missing,)})
    changes = inputs.find_policy_changes(committed)
    verdict = verdict.model_copy(
        update={
            "baseline_experiment": committed.experiment,
            "baseline_system": committed.system,
            "baseline_reason": committed.history[-1].reason,
            "baseline_v2_enabled": committed.v2_enabled,
            "policy_changes": changes,
            "max_drops": committed.max_drops,
        }
    )
    earlier = None if base is None else _read_base(baseline, base)
    refusal = None
    refused = [change for change in changes if change.needs_update]
    if refused:
        texts = (f"{c.description}{' (looser)' if c.effect == 'looser' else ''}" for c in refused)
        refusal = (
            f"not what the baseline was accepted under: {'; '.join(texts)}: undo it, or accept it: "
            f"{update_command(path, baseline)}"
        )
    if refusal is None and earlier is not None:
        refusal = earlier.refuse_other_history(committed)
        verdict = verdict.model_copy(update={"base": base, "is_base": earlier.is_same})
    if refusal is not None:
        return verdict.model_copy(update={"refusals": (refusal,)})
    return _HeldCandidate(inputs, baseline, committed, earlier).compare(verdict)


@dataclass(frozen=True, eq=False)
class _HeldCandidate:
    """A candidate that is held to a baseline.

    Attributes:
        inputs: The experiment, and where its data is.
        path: The baseline's file.
        committed: The baseline.
        earlier: The same at the base commit; None = no commit is named.
    """

    inputs: GateInputs
    path: Path
    committed: Baseline
    earlier: _BaseCommit | None

    def compare(self, verdict: GateVerdict) -> GateVerdict:
        """Complete the verdict with what the candidate's values show."""
        inputs, committed, policy = self.inputs, self.committed, self.inputs.policy
        config = {**committed.config, "name": committed.system}
        reference = parse_model(System, config, lambda _: f"{self.path}: config")
        collections = inputs.load_collections(reference, committed=committed)
        verdict = verdict.model_copy(update=self._find_notices(collections))
        comparison.require_abstain(inputs, committed)
        obstacles = [o for task in collections for o in find_stopping_obstacles(task, inputs)]
        if obstacles:
            starts = {"unmatched": "ids changed: re-chunked?", "suspect": "check the data:"}
            refused = {
                "obstacles": tuple(obstacles),
                "refusals": tuple(f"{starts[each.kind]} {each.statement}" for each in obstacles),
                "is_acceptable": False,
                "exit_code": 3,
            }
            return verdict.model_copy(update=refused)
        descriptions = [describe_collection(task) for task in collections]
        refusals = self._find_refusals(collections, descriptions)
        changes = [] if refusals else [*find_list_changes(committed, descriptions)]
        if changes and policy.lists == "refuse":
            refusals = [change.description for change in changes]
        elif not refusals:
            command = update_command(inputs.source.path, self.path)
            refusals = [*_find_repeat_changes(committed, descriptions, command)]
        if not refusals:
            refusals = [*self._find_irreproducible_values(reference, collections, changes)]
        if refusals:
            unusable = (text for task in collections for text in find_unusable_lists(task, inputs))
            breaks = comparison.find_anchor_breaks(
                committed, inputs.experiment.ties, descriptions, list_held_out(collections)
            )
            refused = {
                "refusals": tuple(refusals),
                "needs_anchor": any(breaks),
                "is_acceptable": not any(unusable),
            }
            return verdict.model_copy(update=refused)
        if changes:
            verdict = verdict.model_copy(update=self._describe_reproduction(changes))
        values = comparison.compare_candidate(inputs, committed, collections)
        if policy.candidates is not None:
            verdict = verdict.model_copy(update=self._count_candidate(values))
            if verdict.refusals:
                return verdict
        return comparison.check_policy(inputs, committed, values, changes, verdict, reference)

    def _find_notices(self, collections: Sequence[EvaluationSet]) -> dict[str, Any]:
        """What speaks against the numbers, and what lint finds in the candidate."""
        duplicates = comparison.search_queries(collections)
        warnings = {
            task.dataset.name: [
                *find_task_warnings(task, [self.inputs.candidate], (), record),
                *warn_of_looks(task, self.inputs),
            ]
            for task, record in zip(collections, duplicates, strict=True)
        }
        return {
            "lint": lint_candidate(self.inputs),
            "data_warnings": tuple(join_collections(warnings)),
            "near_duplicates": tuple(filter(None, duplicates)),
            "synthetic_queries": sum(
                count_synthetic(task.dataset.queries, task.runs.queries) for task in collections
            ),
        }

    def _find_refusals(
        self, collections: Sequence[EvaluationSet], descriptions: Sequence[CollectionBaseline]
    ) -> list[str]:
        """Why the values cannot be compared, or a check could not fail."""
        ties = self.inputs.experiment.ties
        refusals = [
            *find_incompatibilities(self.committed, ties, descriptions, list_held_out(collections))
        ]
        for task in collections:
            refusals += find_unusable_lists(task, self.inputs)
        if refusals:
            return refusals
        return [*find_unreachable_limits(self.inputs, self.committed, collections)]

    def _find_irreproducible_values(
        self, reference: System, collections: Sequence[EvaluationSet], changes: Sequence[ListChange]
    ) -> Iterator[str]:
        """List committed values that differ now; values of changed lists may."""
        changed = {change.collection for change in changes}
        for task in collections:
            if task.dataset.name not in changed:
                old = self.committed.by_collection[task.dataset.name]
                new = describe_collection(task, reference)
                committed = old.value_arrays(new.queries)
                for name, now in new.value_arrays().items():
                    before = committed[name]
                    changed_rows = np.flatnonzero(~(np.abs(now - before) <= NOISE))
                    if len(changed_rows):
                        q = changed_rows[0]
                        yield (
                            f"{old.collection}: the baseline's configuration does not reproduce "
                            f"{name} of {pluralize(len(changed_rows), 'query')} (query "
                            f"{new.queries[q]!r}: committed {before[q]:.6g}, now {now[q]:.6g})"
                        )

    def _describe_reproduction(self, changes: Sequence[ListChange]) -> dict[str, Any]:
        """The lists without which stored values cannot be computed again, and who accepts that.

        A policy that came with the change accepts nothing.
        """
        lists = dict.fromkeys(f"{change.collection}: {change.part}" for change in changes)
        trusted, accepted = self.inputs.policy.unreproduced == "accept", None
        if self.earlier is not None:
            old = self.earlier.baseline
            trusted = trusted and old is not None and old.policy.get("unreproduced") == "accept"
        if self.earlier is not None and self.earlier.is_same:
            accepted = "base"
        elif trusted:
            accepted = "policy"
        return {"unreproduced": tuple(lists), "unreproduced_accepted_by": accepted}

    def _count_candidate(self, compared: Sequence[ComparedCollection]) -> dict[str, Any]:
        """The number of this candidate since the last update, and its line in the ledger.

        Both are None where it has the baseline's values; there may be one candidate too many.
        """
        committed, limit = self.committed, self.inputs.policy.runs
        systems = {each.task.dataset.name: each.table.systems for each in compared}
        unchanged = (
            np.array_equal(sides["baseline"][name].values, values.values)
            for sides in systems.values()
            for name, values in sides["candidate"].items()
        )
        if all(unchanged):
            return {"candidate_number": None, "candidate_line": None}
        values = {
            collection: {name: each.values for name, each in sides["candidate"].items()}
            for collection, sides in systems.items()
        }
        tried = make_candidate(values, self.inputs.candidate.name, committed.checksum)
        needed = [line for line in (committed.ledger,) if line is not None]
        needed += () if self.earlier is None else self.earlier.candidates
        path = candidates_path(self.path)
        number, line = count_candidate(path, tried, limit=limit, needed=needed)
        too_many = (
            f"{limit} different candidates were checked since the last update, as many as "
            "candidates.max allows: update the baseline, or start over with a larger one"
        )
        return {
            "candidate_number": number,
            "candidate_line": line,
            "refusals": () if number <= limit else (too_many,),
        }


def _find_repeat_changes(
    baseline: Baseline, collections: Iterable[CollectionBaseline], command: str
) -> Iterator[str]:
    """Why the repeats of a list are not those that the baseline holds.

    One repeat more or less changes what a check can show: a poor one hides a drop in its variance.

    Args:
        baseline: The committed one.
        collections: The candidate's data.
        command: What accepts other numbers.
    """
    for new in collections:
        old = baseline.by_collection[new.collection]
        most = max((each.trials for each in old.lists.values()), default=1)
        for part, description in new.lists.items():
            # A new list has as many as the others, or is a fixed one.
            allowed = {old.lists[part].trials} if part in old.lists else {most, 1}
            if description.trials not in allowed:
                yield (
                    f"{new.collection}: {part} has {pluralize(description.trials, 'repeat')}, and "
                    f"the baseline {max(allowed)}: their number is part of it: restore the files, "
                    f"or accept it: {command}"
                )


def count_candidate(
    path: Path, tried: CheckedCandidate, *, limit: int, needed: Iterable[LedgerLine]
) -> tuple[int, LedgerLine | None]:
    """The number of a candidate, from 1, among those checked against a baseline, and its line.

    A new one is added to the file, unless it exceeds ``limit``: then it has no line. Gates at the
    same time wait for each other, so that no two candidates have one number.

    Args:
        path: The file.
        tried: The candidate.
        limit: So many are allowed.
        needed: Lines that the file must have.

    Raises:
        DataError: A line of the file is no candidate, or one is missing.
        FusionBenchError: The file cannot be written.
    """
    with lock_folder(path.parent):
        ledger = CANDIDATES.read(path)
        known = {line.digest for line in ledger}
        lost = next((line for line in needed if line.digest not in known), None)
        if lost is not None:
            raise DataError(
                f"{path}: line {lost.line}, on which the baseline relies, is missing: restore the "
                "file, or candidates are miscounted; --update --reason begins a new count"
            )
        listed = [line for line in ledger if line.baseline == tried.baseline]
        for number, line in enumerate(listed, 1):
            if line.candidate == tried.candidate:
                return number, line.place
        is_allowed = len(listed) < limit
        return len(listed) + 1, append_candidate(path, tried, ledger) if is_allowed else None


class _BaseCommit(NamedTuple):
    """The commit, and the baseline there.

    Attributes:
        name: As given.
        is_same: Whether the file of the baseline is the same there, byte by byte.
        baseline: The baseline there; None = there is none that this version reads.
        candidates: The lines of the ledger of checked candidates there.
    """

    name: str
    is_same: bool
    baseline: Baseline | None
    candidates: tuple[LedgerLine, ...] = ()

    def refuse_other_history(self, baseline: Baseline) -> str | None:
        """Why a baseline does not follow that of the commit; None where it does, or none is there.

        An older baseline of the repository, or one written anew, lacks updates of its history; one
        that was edited has other contents without an update.
        """
        if self.baseline is None:
            return None
        parts = {"updated_at", "config_sha256", "means"}  # others may be added later
        old, new = (
            [update.model_dump(include=parts) for update in each.history]
            for each in (self.baseline, baseline)
        )
        pairs = zip_longest(old, new[: len(old)])
        lost = next((before for before, now in pairs if before != now), None)
        if lost is not None:
            reason = f"its history lacks the update of {lost['updated_at']}"
        elif len(old) == len(new) and (
            self.baseline.contents != baseline.contents
            or (self.baseline.anchor != baseline.anchor and not baseline.history[-1].is_anchor)
        ):
            reason = "it differs without an update in its history"
        else:
            return None
        return (
            f"the baseline does not follow that of {self.name}: {reason}: restore it, and update "
            "it from there"
        )


def _read_base(path: Path, commit: str) -> _BaseCommit:
    """The baseline's file at a commit.

    Raises:
        ConfigError: git knows no such commit.
    """
    data = read_committed(path, commit)
    if data is None:
        return _BaseCommit(commit, is_same=False, baseline=None)
    try:
        baseline = Baseline.model_validate_json(data)
    except ValidationError:
        baseline = None
    file = candidates_path(path)
    text = (read_committed(file, commit) or b"").decode(errors="replace")
    lines = CANDIDATES.parse_text(text, file)
    candidates = tuple(line.place for line in lines)
    return _BaseCommit(commit, data == path.read_bytes(), baseline, candidates)
