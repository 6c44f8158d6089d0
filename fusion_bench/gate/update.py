"""A candidate made the new baseline, with what that changes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from fusion_bench._version import ENGINE, __version__
from fusion_bench.checks.obstacles import refuse_obstacles
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.settings import ANSWERED
from fusion_bench.gate import baseline_files, comparison
from fusion_bench.gate.baseline import (
    Anchor,
    Baseline,
    BaselineUpdate,
    CheckUpdate,
    CollectionBaseline,
    QueryLoss,
)
from fusion_bench.gate.checks import Check, build_checks
from fusion_bench.gate.comparability import (
    compare_drops,
    find_changes,
    find_incompatibilities,
    find_list_changes,
)
from fusion_bench.gate.inputs import (
    GateInputs,
    describe_collection,
    find_stopping_obstacles,
    find_unreachable_limits,
    find_unusable_lists,
    list_held_out,
)
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.tolerances import seal_drops
from fusion_bench.gate.verdict import find_blocking
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.util import files
from fusion_bench.util.digests import digest_json
from fusion_bench.util.formatting import is_encodable


def require_visible(path: Path) -> None:
    """Refuse a place below a folder of outputs, where git would not see a file.

    Raises:
        FusionBenchError: Names the ``.gitignore``.
    """
    for folder in files.resolve_path(path).parents:
        file = folder / ".gitignore"
        if file.is_file() and file.read_text(encoding="utf-8", errors="replace") == files.GITIGNORE:
            raise FusionBenchError(
                f"{path}: {file} keeps git from seeing it: choose another folder, or delete that "
                ".gitignore"
            )


def update_baseline(
    inputs: GateInputs, baseline: Path, reason: str, *, anchor: bool = False
) -> Baseline:
    """Write the candidate as the new baseline.

    The newest entry of the history says what the update changed: each check with the verdict of
    the gate on the new values against the old ones, and the queries that lost most. Where nothing
    changed, a new reason is added to the newest entry. Of updates at the same time none is lost.

    Args:
        inputs: The experiment, and where its data is.
        baseline: File to write.
        reason: Why the values may change.
        anchor: Whether the values become the anchor, too. Then a baseline of an earlier format
            version is replaced, with its history.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, a list is degraded or has no
            result, a value is not finite, or nothing changed and the reason is not new. Without
            ``anchor`` also where the values cannot be compared with those of the anchor, or a check
            since the anchor does not pass.
    """
    if not reason.strip() or not is_encodable(reason):
        raise ConfigError("--reason: explain why the values may change, in UTF-8 text")
    reason = " ".join(reason.split())
    require_visible(baseline)
    _read_previous(inputs, baseline, anchor=anchor)  # an error of the file comes before the work
    comparison.require_abstain(inputs)
    collections = inputs.load_collections()
    for task in collections:
        refuse_obstacles(task.dataset.name, find_stopping_obstacles(task, inputs), ())
    unusable = [text for task in collections for text in find_unusable_lists(task, inputs)]
    if unusable:
        raise FusionBenchError(f"no baseline written: {'; '.join(unusable)}")
    for _ in comparison.check_false_answers(inputs, collections):
        pass  # for its refusals: a baseline whose check can never run is none
    inputs.progress("evaluating", 0, 1)
    new = _build_baseline(inputs, collections, reason)
    new = seal_drops(inputs, new)
    unreachable = list(find_unreachable_limits(inputs, new, collections))
    if unreachable:
        raise ConfigError("; ".join(unreachable))
    with files.lock_folder(baseline.parent):
        previous = _read_previous(inputs, baseline, anchor=anchor)
        if previous is not None:
            new = _continue_history(inputs, baseline, collections, (previous, new), anchor=anchor)
        if inputs.policy.candidates is not None:
            # Candidates after this line of the ledger are counted anew.
            path = baseline_files.candidates_path(baseline)
            values = {record.collection: record.value_arrays() for record in new.collections}
            line = baseline_files.append_candidate(
                path,
                baseline_files.make_candidate(values, new.system),
                baseline_files.CANDIDATES.read(path),
            )
            new = new.model_copy(update={"ledger": line})
        write_baseline(new, baseline)
    return new


def _read_previous(inputs: GateInputs, baseline: Path, *, anchor: bool) -> Baseline | None:
    """The baseline that is replaced; None = the new one is the first, or replaces an older format.

    Raises:
        DataError: It cannot be used.
    """
    is_replaced = anchor and baseline_files.is_older_format(baseline)
    return None if is_replaced else baseline_files.read_baseline(baseline, inputs.source.path)


def _continue_history(
    inputs: GateInputs,
    baseline: Path,
    collections: Sequence[EvaluationSet],
    sides: tuple[Baseline, Baseline],
    *,
    anchor: bool,
) -> Baseline:
    """The new baseline with the history, and without ``anchor`` the anchor, of the previous one.

    Args:
        inputs: The experiment.
        baseline: The file.
        collections: The loaded datasets.
        sides: The previous baseline, and the new one with its update alone.
        anchor: Whether the new values become the anchor.

    Raises:
        FusionBenchError: The anchor refuses the values, or nothing changed.
    """
    previous, new = sides
    if not anchor:
        _refuse_far_from_anchor(inputs, previous, new, collections)
        known = previous.anchor.by_collection
        # Measures and collections that the anchor lacks begin with their new values.
        kept = tuple(
            _add_measures(known[each.collection], each) if each.collection in known else each
            for each in new.collections
        )
        anchored = previous.anchor.model_copy(update={"collections": kept})
        new = new.model_copy(update={"anchor": anchored})
    newest, update = previous.history[-1], new.history[0]
    if previous.contents != new.contents:
        changes = _describe_changes(inputs, baseline, sides, collections)
        history = (*previous.history, update.model_copy(update={**changes, "is_anchor": anchor}))
    elif anchor and not previous.is_anchor:
        reasons = tuple(dict.fromkeys((*newest.reasons, *update.reasons)))
        blessed = newest.model_copy(update={"reasons": reasons, "is_anchor": True})
        history = (*previous.history[:-1], blessed)
    elif update.reason not in newest.reasons:
        reasons = (*newest.reasons, update.reason)
        history = (*previous.history[:-1], newest.model_copy(update={"reasons": reasons}))
    else:
        raise FusionBenchError(
            f"{baseline}: nothing to update: values, configuration, contents, policy and reason "
            f"have not changed since {newest.updated_at}: a new --reason is added to it"
        )
    return new.model_copy(update={"history": history})


def _add_measures(anchor: CollectionBaseline, new: CollectionBaseline) -> CollectionBaseline:
    """The anchor's record with the measures that only the new one has, in its own order."""
    rows = new.find_rows(anchor.queries).tolist()

    def add(
        old: Mapping[str, tuple[float | None, ...]], others: Mapping[str, tuple[float | None, ...]]
    ) -> dict[str, tuple[float | None, ...]]:
        return {name: tuple(row[i] for i in rows) for name, row in others.items()} | dict(old)

    unjudged = anchor.unjudged
    if unjudged is not None and new.unjudged is not None:
        columns = {
            "judged_only": add(unjudged.judged_only, new.unjudged.judged_only),
            "filled": add(unjudged.filled, new.unjudged.filled),
        }
        unjudged = unjudged.model_copy(update=columns)
    repeats = {
        name: tuple(tuple(row[i] for i in rows) for row in each)
        for name, each in new.trials.items()
        if name not in anchor.values
    }
    changed = {
        "values": add(anchor.values, new.values),
        "trials": repeats | dict(anchor.trials),
        "definitions": {**new.definitions, **anchor.definitions},
        "unjudged": unjudged,
    }
    return anchor.model_copy(update=changed)


_encode_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def write_baseline(baseline: Baseline, path: Path) -> None:
    """Write a baseline with its checksum.

    Raises:
        FusionBenchError: The file cannot be written.
    """
    text = _format_json(baseline.with_checksum().stored_data)
    files.write_atomic(path, f"{text}\n".encode())


def _format_json(value: object, indent: int = 0) -> str:
    """JSON with each list of plain values on one line, so that a diff stays readable.

    Floats are written as the shortest text that reads back as the same float.
    """
    entries: list[str] = []
    if isinstance(value, dict):
        entries = [
            f"{_encode_json(key)}: {_format_json(item, indent + 1)}" for key, item in value.items()
        ]
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        entries = [_format_json(item, indent + 1) for item in value]
    if not entries:
        return _encode_json(value)
    brackets = "{}" if isinstance(value, dict) else "[]"
    inner = f",\n{' ' * (indent + 1)}".join(entries)
    return f"{brackets[0]}\n{' ' * (indent + 1)}{inner}\n{' ' * indent}{brackets[1]}"


def _refuse_far_from_anchor(
    inputs: GateInputs, previous: Baseline, new: Baseline, collections: Sequence[EvaluationSet]
) -> None:
    """Refuse new values that cannot be compared with the anchor, or may lie too far below it.

    Raises:
        FusionBenchError: They do.
    """
    remedy = "--anchor --reason accepts the values as the new anchor"
    ties, held_out = inputs.experiment.ties, list_held_out(collections)
    breaks = list(comparison.find_anchor_breaks(previous, ties, new.collections, held_out))
    if breaks:
        raise FusionBenchError(
            f"no baseline written: the values since the anchor cannot be compared: "
            f"{'; '.join(breaks)}: {remedy}"
        )
    known, records = previous.by_collection, new.by_collection
    checks: list[Check] = []
    for task in collections:
        name = task.dataset.name
        if name in known and previous.contents != new.contents:
            anchor = previous.anchor.by_collection[name]
            compared = comparison.compare_records(
                task, records[name], {"anchor": anchor}, new.drops_of(name)
            )
            checks += build_checks(inputs.policy, compared, "anchor")
    rejected = comparison.describe_rejected(checks, inputs.experiment.seed)
    if rejected:
        raise FusionBenchError(
            f"no baseline written: since the anchor ({previous.anchor.updated_at[:10]}, "
            f"“{previous.anchor.reason}”) no pass is shown: {'; '.join(rejected)}: {remedy}"
        )


def _build_baseline(
    inputs: GateInputs, collections: Sequence[EvaluationSet], reason: str
) -> Baseline:
    """The candidate as a baseline, with this update as its only one.

    Raises:
        FusionBenchError: A value is not finite.
    """
    candidate, experiment = inputs.candidate, inputs.experiment
    records = tuple(describe_collection(task, candidate) for task in collections)
    config = candidate.resolved_config
    means: dict[str, dict[str, float]] = {record.collection: {} for record in records}
    for record in records:
        for name, values in record.value_arrays().items():
            if name == ANSWERED:
                continue  # of answerable queries only, as its checks have it
            if not np.isfinite(values).all():
                raise FusionBenchError(f"{record.collection}: {name} is not finite for some query")
            means[record.collection][name] = exact_mean(values)
    update = BaselineUpdate(
        updated_at=datetime.now(UTC).isoformat(timespec="seconds"),
        reasons=(reason,),
        version=__version__,
        config_sha256=digest_json(config),
        means=means,
        is_anchor=True,
    )
    return Baseline(
        anchor=Anchor(
            updated_at=update.updated_at,
            reason=update.reason,
            system=candidate.name,
            collections=records,
        ),
        engine=ENGINE,
        experiment=files.name_experiment(inputs.source.path),
        system=candidate.name,
        config=config,
        policy=inputs.policy.model_dump(mode="json"),
        seed=experiment.seed,
        v2_enabled=experiment.v2_enabled,
        ties=experiment.ties,
        collections=records,
        history=(update,),
    )


def _describe_changes(
    inputs: GateInputs,
    baseline: Path,
    sides: tuple[Baseline, Baseline],
    collections: Sequence[EvaluationSet],
) -> dict[str, Any]:
    """What the update changes, as fields of its record.

    The reference is the old value of each query, whatever the policy says of changed lists.
    """
    candidate, (previous, new) = inputs.candidate, sides
    always = {
        "config_changes": find_changes(previous.config, candidate.resolved_config),
        "policy_changes": (
            *inputs.find_policy_changes(previous),
            *compare_drops(previous.max_drops, new.max_drops),
        ),
    }
    ties, held_out = inputs.experiment.ties, list_held_out(collections)
    described = map(describe_collection, collections)
    reasons = tuple(find_incompatibilities(previous, ties, described, held_out))
    inputs, collections = _keep_known_measures(inputs, previous, collections)
    descriptions = [describe_collection(task) for task in collections]
    breaks = find_incompatibilities(previous, ties, descriptions, held_out)
    has_measures = all(task.measures for task in collections)
    if not (inputs.policy.tolerances and has_measures) or any(breaks):
        return {**always, "incomparable": reasons}
    # Only the candidate's lists are loaded: others that the baseline read are in config_changes.
    list_changes = tuple(
        change for change in find_list_changes(previous, descriptions) if change.change != "missing"
    )
    verdict = GateVerdict(
        experiment=files.name_experiment(inputs.source.path),
        baseline=str(baseline),
        system=candidate.name,
        blocking=find_blocking(inputs.policy),
        near_duplicates=tuple(filter(None, comparison.search_queries(collections))),
    )
    compared = comparison.compare_candidate(inputs, previous, collections, new)
    verdict = comparison.check_policy(inputs, previous, compared, list_changes, verdict)
    return {
        **always,
        "verdict": verdict.headline,
        "incomparable": reasons,
        "list_changes": list_changes,
        "checks": tuple(map(CheckUpdate.from_result, verdict.checks)),
        "losses": tuple(map(QueryLoss.from_result, verdict.regressions)),
    }


def _keep_known_measures(
    inputs: GateInputs, previous: Baseline, collections: Sequence[EvaluationSet]
) -> tuple[GateInputs, list[EvaluationSet]]:
    """Keep the measures of which the previous baseline has values."""
    stored = previous.by_collection
    policy, measures = inputs.policy, inputs.measures
    known = {
        key
        for i, key in enumerate(measures)
        if all(
            task.measures[i].name in stored[task.dataset.name].definitions
            for task in collections
            if task.dataset.name in stored
        )
    }
    is_answered = all(ANSWERED in record.definitions for record in stored.values())
    kept = policy.model_copy(
        update={
            "answered": policy.answered if is_answered else None,
            "checks": {key: check for key, check in policy.checks.items() if key in known},
            "guards": tuple(guard for guard in policy.guards if guard.measure in known),
        }
    )
    experiment = inputs.experiment.model_copy(update={"gate": kept})
    tasks = []
    for task in collections:
        named = zip(measures, task.measures, strict=True)
        chosen = tuple(measure for key, measure in named if key in known)
        gated = task.experiment.model_copy(update={"gate": kept})
        tasks.append(replace(task, measures=chosen, experiment=gated))
    return replace(inputs, experiment=experiment), tasks
