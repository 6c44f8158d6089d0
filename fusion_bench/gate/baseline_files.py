"""The files of a baseline: itself, the candidates since its last update.

The checksum finds an edit. These rules find what a checksum made anew would hide, and keep a file
that no version wrote from ending anywhere but in one line.

With ``candidates: {max: R}`` each of up to R different candidates is checked at α/R, so that a
false alarm or a false pass among all of them has a probability of at most α. One line a candidate
stands in ``NAME.candidates.jsonl`` beside the baseline. Checking the same values again is no new
candidate. An update adds a line, too, which the new baseline names: so a ledger that was deleted or
cut before that line is missed. Each line names the one before it, see ``io.chained_ledger``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from shlex import join
from typing import Final

import numpy as np

from fusion_bench.config.json_records import StoredRecord, read_stored
from fusion_bench.config.models import parse_model
from fusion_bench.config.own_methods import list_own
from fusion_bench.config.plugins import plugin_words
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.evaluation.report_file import ROUNDING, check_column
from fusion_bench.experiment.settings import ANSWERED, GatePolicy
from fusion_bench.gate.baseline import Baseline, CollectionBaseline, LedgerLine
from fusion_bench.io.chained_ledger import LedgerFormat, digest_line, follow_lines
from fusion_bench.measures._base import is_bounded
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.util.digests import add_line_digest, digest_json
from fusion_bench.util.files import append_whole, baseline_path, read_regular_text

#: Earlier versions of the format that are read.
OLDER_VERSIONS: Final = (6,)
#: Parts that every collection is loaded from.
REQUIRED_DIGESTS: Final = ("qrels",)


def _find_inconsistencies(baseline: Baseline) -> Iterator[str]:
    """List what no version of this package would have written; nothing if all parts agree."""
    try:
        parse_model(GatePolicy, baseline.policy, "policy")
    except ConfigError as error:
        yield str(error)
    for place, collections in (
        ("collections", baseline.collections),
        ("anchor.collections", baseline.anchor.collections),
    ):
        names = [record.collection for record in collections]
        if not names or len(set(names)) < len(names):
            yield f"{place}: different collections are needed, given {names}"
        for record in collections:
            for problem in _check_collection(record):
                yield f"{place}: {record.collection}: {problem}"
    anchor = baseline.anchor.by_collection
    for record in baseline.collections:
        old = anchor.get(record.collection)
        if old is None:
            yield f"anchor.collections: no {record.collection}"
        elif set(old.queries) != set(record.queries):
            yield f"anchor.collections: {record.collection}: queries: not those of the baseline"
        elif not old.values.keys() >= record.values.keys():
            yield f"anchor.collections: {record.collection}: values: a measure is missing"
    yield from _check_newest_update(baseline)


def _check_newest_update(baseline: Baseline) -> Iterator[str]:
    """The newest update is of these values and of this configuration."""
    newest = baseline.history[-1]
    if newest.config_sha256 != digest_json(baseline.config):
        yield "config: not the configuration of the newest update in the history"
    for record in baseline.collections:
        means = newest.means.get(record.collection, {})
        for name in sorted(record.values.keys() - {ANSWERED}):
            column, mean = record.values[name], means.get(name)
            if not column or mean is None or abs(exact_mean(np.array(column)) - mean) > ROUNDING:
                yield (
                    f"collections: {record.collection}: values.{name}: their mean is not that of "
                    "the newest update in the history"
                )


def _check_collection(record: CollectionBaseline) -> Iterator[str]:
    """List what is inconsistent in the record of a collection, its repeats and unjudged shares."""
    queries = record.queries
    repeated = [query for query, count in Counter(queries).items() if count > 1]
    if not queries or repeated:
        yield f"queries: different ids are needed, given {repeated[:1] or 'none'}"
    absent = {*REQUIRED_DIGESTS, *record.lists}.difference(record.digests)
    if absent:
        yield f"digests: none of {', '.join(sorted(absent))}"
    if record.values.keys() != record.definitions.keys():
        yield "values: the measures are not those of the definitions"
    yield from _check_columns("values", record.values, len(queries))
    for name, repeats in record.trials.items():
        for row in repeats:
            yield from _check_columns("trials", {name: row}, len(queries))
        values = record.values.get(name)
        if values is None or len(repeats) < 2 or any(len(row) != len(values) for row in repeats):
            yield f"trials.{name}: at least 2 trials of a measure with values are needed"
        elif not np.allclose(np.mean(repeats, axis=0), values, rtol=0, atol=ROUNDING):
            yield f"trials.{name}: their means are not the values"
    unjudged = record.unjudged
    if unjudged is not None:
        measures = record.values.keys() - {ANSWERED}
        if unjudged.judged_only and not unjudged.judged_only.keys() >= measures:
            yield "unjudged.judged_only: a measure is missing"
        yield from _check_columns("unjudged", {"share": unjudged.share}, len(queries))
        yield from _check_columns("unjudged.judged_only", unjudged.judged_only, len(queries))
        yield from _check_columns("unjudged.filled", unjudged.filled, len(queries))


def _check_columns(
    place: str, columns: Mapping[str, Sequence[float | None]], count: int
) -> Iterator[str]:
    """Columns with a value a query, in the measure's range."""
    for name, column in columns.items():
        has_range = name == "share" or is_bounded(name)
        yield from check_column(f"{place}.{name}", column, count, is_bounded=has_range)


def update_command(
    experiment: Path, baseline: Path, datasets: Sequence[Path] = (), *, anchor: bool = False
) -> str:
    """The command that writes a baseline.

    Args:
        experiment: The experiment's file.
        baseline: The baseline's file.
        datasets: Folders of named datasets.
        anchor: Whether the values become the anchor, too.
    """
    words = gate_command(experiment, baseline, datasets)
    return f'{words} --{"anchor" if anchor else "update"} --reason "…"'


def gate_command(experiment: Path, baseline: Path, datasets: Sequence[Path] = ()) -> str:
    """The command that checks an experiment; see :func:`update_command`."""
    options: list[object] = [word for folder in datasets for word in ("--datasets", folder)]
    if baseline != baseline_path(experiment):
        options += ["--baseline-file", baseline]
    words = ("fusion-bench", "gate", experiment, *options, *plugin_words())
    return join(str(word) for word in words)


def read_baseline(path: Path, experiment: Path | None = None) -> Baseline | None:
    """Read a baseline; None where there is no such file.

    Args:
        path: The file.
        experiment: Its experiment, for the command in an error.

    Raises:
        DataError: Not a baseline, of another format version, edited by hand, or inconsistent.
    """
    is_older = is_older_format(path)
    command = update_command(experiment or Path("EXPERIMENT"), path, anchor=is_older)
    remedy = f"{'' if is_older else 'move it away and '}write a new one: {command}"
    if not path.exists():
        return None
    baseline = read_stored(path, Baseline, what="baseline", remedy=remedy, older=OLDER_VERSIONS)
    data = json.loads(read_regular_text(path))  # an earlier version has its own words
    if data.pop("checksum", "") != digest_json(data):
        raise DataError(
            f"{path}: edited since it was written (its checksum does not match): restore it, or "
            f"{remedy}"
        )
    problem = next(_find_inconsistencies(baseline), None)
    if problem is not None:
        raise DataError(f"{path}: {problem}: restore it, or {remedy}")
    newest = Baseline.model_fields["format_version"].default
    return baseline.model_copy(update={"format_version": newest})


def list_plugins(baseline: Baseline | None) -> frozenset[str]:
    """The sources of the user's own methods that the values of a baseline come from."""
    if baseline is None:
        return frozenset()
    configs = [baseline.config, *(record.definitions for record in baseline.collections)]
    return frozenset(origin for config in configs for _, origin in list_own(config))


def is_older_format(path: Path) -> bool:
    """Whether a file is a baseline of a version that is not read."""
    try:
        data = json.loads(read_regular_text(path))
    except (OSError, ValueError, RecursionError):
        return False
    name = Baseline.model_fields["format"].default
    if not isinstance(data, dict) or data.get("format") != name:
        return False
    version = data.get("format_version")
    return isinstance(version, int) and version < min(OLDER_VERSIONS)


class CheckedCandidate(StoredRecord):
    """One line of the file.

    Attributes:
        baseline: Checksum of the baseline that it was compared with; empty = it became one.
        candidate: SHA-256 of its values.
        system: Its name.
        checked_at: UTC, ISO 8601.
        line: Its number in the file; None = an earlier version wrote it.
        previous: Digests of the lines that it follows.
    """

    baseline: str
    candidate: str
    system: str
    checked_at: str
    line: int | None = None
    previous: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The digest of the whole line."""
        return digest_line(self.model_dump_json())

    @property
    def place(self) -> LedgerLine:
        """What a record keeps that relies on the line."""
        return LedgerLine(line=self.line or 0, digest=self.digest)


def candidates_path(baseline: Path) -> Path:
    """The file beside a baseline."""
    return baseline.with_name(f"{baseline.stem}.candidates.jsonl")


def make_candidate(
    values: Mapping[str, Mapping[str, FloatArray]], system: str, baseline: str = ""
) -> CheckedCandidate:
    """A candidate of now.

    Args:
        values: By collection and measure; NaN has its own text.
        system: Its name.
        baseline: Checksum of what it is compared with; empty = it becomes the baseline.
    """
    texts = {
        name: {measure: list(map(repr, row.tolist())) for measure, row in rows.items()}
        for name, rows in values.items()
    }
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return CheckedCandidate(
        baseline=baseline, candidate=digest_json(texts), system=system, checked_at=now
    )


#: Earlier versions wrote lines without digests.
CANDIDATES: Final = LedgerFormat(
    CheckedCandidate.model_validate_json,
    "ledger of checked candidates",
    "without it candidates are miscounted",
    undigested='{"baseline":',
)


def append_candidate(
    path: Path, tried: CheckedCandidate, ledger: Sequence[CheckedCandidate]
) -> LedgerLine:
    """Add a candidate to the lines of a file, whose folder the caller has locked."""
    line = tried.model_copy(update=follow_lines(ledger))
    append_whole(path, f"{add_line_digest(line.model_dump_json())}\n".encode())
    return line.place
