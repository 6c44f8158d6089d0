"""The search: the default with the presets first, then a grid or a sampler in batches.

Format history:
    1   first version
    2   the first line has the parts of the search's fingerprint; each line ends with a digest

The first line holds the fingerprint of the search, and every line a digest of itself and of the
first. A batch is written and flushed to disk before the next one is asked for, so a killed process
loses no finished trial; an incomplete last line is removed when the file is read again. A resumed
search runs its sampler again and looks up the values here.

Optuna runs in memory: its own storages cost 3–25 ms a trial.

The trials depend only on the objective, the settings and the seed; the clock decides only when to
stop. A resumed search goes through the same trials again and looks up their values.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias, get_args

import numpy as np

from fusion_bench.config.parameters import Parameter, Params, Value
from fusion_bench.config.removed_names import describe_gone
from fusion_bench.data.ordering import BoolArray
from fusion_bench.errors import ConfigError, DataError, MissingExtraError
from fusion_bench.experiment.settings import GONE_SAMPLER, SamplerName, SearchSettings
from fusion_bench.io.fingerprints import Fingerprint
from fusion_bench.tune.objective import TuningObjective, params_key
from fusion_bench.util.digests import add_line_digest, strip_line_digest
from fusion_bench.util.files import append_whole, make_output_folder, read_regular

if TYPE_CHECKING:
    import optuna


VERSION = 2
#: A mean of values may exceed the measure's limits by rounding.
ROUNDING = 1e-9
#: Of a measure whose limits are not known.
UNLIMITED = (-sys.float_info.max, sys.float_info.max)


def describe_search(identity: Fingerprint) -> dict[str, Any]:
    """The first line of the log of a search, without its digest."""
    return {"version": VERSION, "parts": dict(identity.parts), "rows": dict(identity.rows)}


def read_sampler(path: Path) -> str | None:
    """The sampler of the search that a log belongs to; None where it does not say."""
    head = read_regular(path).partition(b"\n")[0]
    with contextlib.suppress(ValueError, RecursionError, LookupError, TypeError):
        sampler = json.loads(json.loads(head)["parts"]["sampler"])
        return sampler if sampler in get_args(SamplerName) else None
    return None  # whoever opens the log to go on says what is wrong with it


def refuse_other_search(line: str, path: Path, identity: Fingerprint) -> None:
    """Check the first line of a log.

    Args:
        line: The line.
        path: The file.
        identity: Of the search that is to go on from it.

    Raises:
        ConfigError: It belongs to another search, says which part differs; or an earlier version
            wrote it.
        DataError: It is no such line, or was edited.
    """
    text = strip_line_digest(line, "")
    if text is None:
        with contextlib.suppress(ValueError, RecursionError):
            head = json.loads(line)
            if isinstance(head, dict) and head.get("version") == 1 and "search" in head:
                raise ConfigError(
                    f"{path}:1: an earlier version wrote this log, without what its values depend "
                    f"on: search again: delete it (rm {shlex.quote(str(path))}), and run the same "
                    "command"
                )
        _refuse_line(f"{path}:1", "move the file away")
    head = _parse_json(text, f"{path}:1")
    try:
        earlier = Fingerprint(head["parts"], head["rows"])
        if earlier.parts.get("sampler") == json.dumps(GONE_SAMPLER):
            raise ConfigError(
                f"{path}: {describe_gone(f'sampler: {GONE_SAMPLER}')}: this log cannot be resumed: "
                "choose another --out, or move the file away"
            )
        changes = earlier != identity and identity.summarize_changes(earlier)
    except (KeyError, TypeError, AttributeError):
        _refuse_line(f"{path}:1", "move the file away")
    if changes:
        raise ConfigError(
            f"{path}: belongs to another search ({changes}): choose another --out, or move the "
            "file away"
        )


def read_trial(
    line: str, where: str, head: str, limits: tuple[float, float]
) -> tuple[Params, float]:
    """The parameters and the value of one line; NaN = could not be computed.

    Args:
        line: The line.
        where: File and number of the line.
        head: Digest of the search.
        limits: Least and greatest value of the measure.

    Raises:
        DataError: It was edited, or its value is none of the measure.
    """
    remedy = "delete the line, and its trial is evaluated again"
    text = strip_line_digest(line, head)
    if text is None:
        _refuse_line(where, remedy)
    record = _parse_json(text, where)
    try:
        params, value = dict(record["params"]), record["value"]
    except (KeyError, TypeError, ValueError):
        _refuse_line(where, remedy)
    if value is None:
        return params, math.nan
    low, high = limits
    if type(value) not in {int, float} or not low - ROUNDING <= value <= high + ROUNDING:
        raise DataError(
            f"{where}: value {str(value)[:20]!r}: the measure's values lie in [{low:g}, {high:g}]: "
            f"{remedy}"
        )
    return params, float(value)


def _parse_json(text: str, where: str) -> dict[str, Any]:
    """The object of a line whose digest is right."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        _refuse_line(where, "move the file away")
    if not isinstance(record, dict):
        _refuse_line(where, "move the file away")
    return record


def _refuse_line(where: str, remedy: str) -> NoReturn:
    raise DataError(
        f"{where}: not as a search wrote it (its digest does not match: it was edited or damaged): "
        f"restore the file, or {remedy}"
    )


TrialOrigin: TypeAlias = Literal["default", "seed", "sampler", "frozen"]


@dataclass(frozen=True)
class Trial:
    """One evaluated parameter set.

    Attributes:
        number: Counted from 0.
        params: Path → value.
        value: Mean of the measure over the tuning queries; NaN = could not be computed.
        origin: ``default``, ``seed`` (a preset of the methods), ``sampler``, or ``frozen`` by a
            plan of looks.
    """

    number: int
    params: Params
    value: float
    origin: TrialOrigin

    @property
    def is_failed(self) -> bool:
        """Whether it could not be computed."""
        return math.isnan(self.value)


class TrialLog:
    """The trials of one search, in memory and on disk.

    Args:
        path: The file; made with its folder if need be. None = in memory only.
        identity: Of the search: settings, space and data.
        limits: Least and greatest value of the measure.

    Attributes:
        trials: Those of this process, in the order of their numbers.

    Raises:
        ConfigError: The file belongs to another search, or an earlier version wrote it.
        DataError: A line that is no trial, other than the last, or that was edited.
    """

    def __init__(
        self,
        path: Path | None = None,
        identity: Fingerprint | None = None,
        limits: tuple[float, float] = UNLIMITED,
    ) -> None:
        self.trials: list[Trial] = []
        self._path = path
        self._values: dict[str, float] = {}
        self._head = ""
        if path is not None:
            make_output_folder(path.parent)
            path.touch()
            identity = identity or Fingerprint({})
            data = read_regular(path)
            whole = data[: data.rfind(b"\n") + 1]
            if len(whole) < len(data):  # the process was killed while it wrote this line
                os.truncate(path, len(whole))
            head, *lines = whole.decode(errors="replace").split("\n")
            if head:
                refuse_other_search(head, path, identity)
            else:
                self._append_records([describe_search(identity)])
            self._head = identity.digest
            for number, line in enumerate(lines[:-1], 2):
                params, value = read_trial(line, f"{path}:{number}", self._head, limits)
                self._values[params_key(params)] = value

    def __len__(self) -> int:
        return len(self._values)

    def evaluate_params(
        self, objective: TuningObjective, batch: Sequence[Params], origin: TrialOrigin
    ) -> list[Trial]:
        """Evaluate what is not logged yet, and wait until the disk has it."""
        keys = [params_key(params) for params in batch]
        new = {key: p for key, p in zip(keys, batch, strict=True) if key not in self._values}
        means = objective.evaluate_params(list(new.values())).mean(axis=1).tolist() if new else []
        self._values |= dict(zip(new, means, strict=True))
        numbered = enumerate(zip(keys, batch, strict=True), len(self.trials))
        done = [Trial(n, dict(params), self._values[key], origin) for n, (key, params) in numbered]
        self.trials += done  # before the file, so that Ctrl-C between the two loses nothing
        self._append_records(
            [
                {
                    "number": trial.number,
                    "origin": origin,
                    "value": None if trial.is_failed else trial.value,
                    "params": trial.params,
                }
                for key, trial in zip(keys, done, strict=True)
                if key in new
            ]
        )
        return done

    def _append_records(self, records: Sequence[object]) -> None:
        if self._path is not None and records:
            texts = (json.dumps(record, separators=(",", ":")) for record in records)
            lines = [add_line_digest(text, self._head) for text in texts]
            append_whole(self._path, "".join(f"{line}\n" for line in lines).encode())


#: The samplers that go through every point.
EXHAUSTIVE_SAMPLERS = ("grid", "brute_force")
#: The most points that are gone through.
MOST_POINTS = 200_000


def grid_points(
    parameters: Sequence[Parameter],
    settings: SearchSettings,
    normalize: Callable[[Params], Params],
) -> list[Params]:
    """List each point of a finite space once; in random order if ``trials`` are fewer.

    Args:
        parameters: The space.
        settings: Whose sampler is ``grid`` or ``brute_force``.
        normalize: Maps equal systems to equal parameters, so that each system is tried once.

    Raises:
        ConfigError: There are too many points, or infinitely many.
    """
    levels = {parameter.path: _parameter_levels(parameter, settings) for parameter in parameters}
    points = list(itertools.islice(_all_points(parameters, levels), MOST_POINTS + 1))
    if len(points) > MOST_POINTS:
        raise ConfigError(
            f"sampler {settings.sampler}: the space has more than {MOST_POINTS:,} points: "
            "tune fewer parameters, use larger steps, or another sampler"
        )
    points = list({repr(params): params for params in map(normalize, points)}.values())
    if len(points) > settings.trials:
        order = np.random.default_rng(settings.seed).permutation(len(points))
        points = [points[i] for i in order]
    return points


def _parameter_levels(parameter: Parameter, settings: SearchSettings) -> tuple[Value, ...]:
    """The values to go through."""
    if parameter.kind == "choice":
        return parameter.choices
    low, high = parameter.bounds
    every = settings.sampler == "brute_force"
    step = 1.0 if every and parameter.kind == "int" and not parameter.step else parameter.step
    if step is not None:  # on integers, divided once: sums of steps lose the last ones
        values = low + np.arange(int((high - low) / step + 1e-9) + 1) * step
    elif every:
        raise ConfigError(
            f"sampler brute_force goes through every value, and {parameter.path} has no step: "
            "give it one, or use grid"
        )
    elif parameter.log:
        values = np.geomspace(low, high, settings.points)
    else:
        values = np.linspace(low, high, settings.points)
    if parameter.kind == "int":
        return tuple(dict.fromkeys(int(v) for v in np.rint(values)))
    return tuple(float(f"{v:.12g}") for v in values)


def _all_points(
    parameters: Sequence[Parameter],
    levels: Mapping[str, Sequence[Value]],
    chosen: Params = MappingProxyType({}),
) -> Iterator[Params]:
    """Yield every point, the last parameter fastest, without inactive parameters."""
    if not parameters:
        yield chosen
        return
    first, *rest = parameters
    if not first.is_active(chosen):
        yield from _all_points(rest, levels, chosen)
        return
    for value in levels[first.path]:
        yield from _all_points(rest, levels, {**chosen, first.path: value})


#: Optuna's class of each sampler, and what it is made with.
OPTUNA_SAMPLERS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "tpe": ("TPESampler", {"multivariate": True, "group": True}),
    "nsga2": ("NSGAIISampler", {"population_size": 32}),  # small, because there are few trials
    "cmaes": ("CmaEsSampler", {}),
    "gp": ("GPSampler", {}),
    "qmc": ("QMCSampler", {"scramble": True}),
    "random": ("RandomSampler", {}),
}


#: Optuna's method that suggests a value of each kind.
SUGGESTIONS: Final = {
    "choice": "suggest_categorical",
    "int": "suggest_int",
    "float": "suggest_float",
}


def optuna_distribution(parameter: Parameter) -> optuna.distributions.BaseDistribution:
    """The parameter as an Optuna distribution."""
    from optuna import distributions

    if parameter.kind == "choice":
        return distributions.CategoricalDistribution(parameter.choices)
    low, high = parameter.bounds
    if parameter.kind == "int":
        step = int(parameter.step or 1)
        return distributions.IntDistribution(int(low), int(high), log=parameter.log, step=step)
    return distributions.FloatDistribution(low, high, log=parameter.log, step=parameter.step)


def suggest_params(trial: optuna.Trial, parameters: Sequence[Parameter]) -> Params:
    """Let Optuna suggest a value for each active parameter.

    Values are rounded to few digits; Optuna keeps the unrounded ones.
    """
    params: dict[str, Value] = {}
    for parameter in parameters:
        if not parameter.is_active(params):
            continue
        limits = vars(optuna_distribution(parameter))
        suggest: Any = getattr(trial, SUGGESTIONS[parameter.kind])
        params[parameter.path] = parameter.round_value(suggest(parameter.path, **limits))
    return params


def check_sampler(parameters: Sequence[Parameter], sampler: str) -> None:
    """Refuse a sampler that cannot search this space.

    Raises:
        ConfigError: Says which parameter it cannot take, and who can.
        MissingExtraError: It needs a package that is not installed.
    """
    if sampler not in OPTUNA_SAMPLERS:
        raise ConfigError(f"sampler {sampler}: cannot be shared: use it without --storage")
    conditional = [p.path for p in parameters if p.when]
    choices = [p.path for p in parameters if p.kind == "choice"]
    if conditional and sampler in {"cmaes", "gp", "qmc"}:
        raise ConfigError(
            f"sampler {sampler} searches fixed spaces only, and {conditional[0]} takes part only "
            "under a condition: use tpe or random, or fix the method"
        )
    if choices and sampler == "cmaes":
        raise ConfigError(
            f"sampler cmaes searches numbers only, and {choices[0]} is a choice: use tpe, or list "
            "the numbers under tune.parameters"
        )
    if sampler == "gp" and find_spec("torch") is None:
        raise MissingExtraError("torch", extra="gp", purpose="the sampler gp")


@contextmanager
def silence_experimental_warnings() -> Iterator[None]:
    """Silence Optuna's warnings about experimental parts, and nothing else."""
    from optuna.exceptions import ExperimentalWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        yield


def optuna_sampler(name: str, seed: int) -> optuna.samplers.BaseSampler:
    """Optuna's sampler of that name."""
    from optuna import samplers

    kind, options = OPTUNA_SAMPLERS[name]
    with silence_experimental_warnings():
        sampler: optuna.samplers.BaseSampler = getattr(samplers, kind)(seed=seed, **options)
    return sampler


class OptunaProposer:
    """An Optuna sampler, asked and told in batches.

    Args:
        parameters: The space.
        sampler: As :func:`optuna_sampler` makes it.
        directions: ``maximize`` or ``minimize`` for each objective.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        sampler: optuna.samplers.BaseSampler,
        directions: Sequence[Literal["maximize", "minimize"]] = ("maximize",),
    ) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._parameters = parameters
        self._study = optuna.create_study(directions=directions, sampler=sampler)
        self._asked: list[optuna.Trial] = []

    def add_trials(self, trials: Sequence[tuple[Params, float]]) -> None:
        """Add trials that it did not propose, without failed ones (NaN)."""
        import optuna

        space = {parameter.path: optuna_distribution(parameter) for parameter in self._parameters}
        for params, value in trials:
            if not math.isnan(value):
                distributions = {path: space[path] for path in params}
                self._study.add_trial(
                    optuna.create_trial(
                        params=dict(params), distributions=distributions, value=value
                    )
                )

    def ask(self, count: int) -> list[Params]:
        """New parameter sets: each proposal takes account of the running ones."""
        with silence_experimental_warnings():
            self._asked = [self._study.ask() for _ in range(count)]
            return [suggest_params(trial, self._parameters) for trial in self._asked]

    def tell(self, values: Sequence[float | Sequence[float] | None]) -> None:
        """The values of the last :meth:`ask`; None or NaN = could not be computed."""
        from optuna.trial import TrialState

        with silence_experimental_warnings():
            for trial, value in zip(self._asked, values, strict=True):
                if value is None or (isinstance(value, float) and math.isnan(value)):
                    self._study.tell(trial, state=TrialState.FAIL)
                else:
                    self._study.tell(trial, value)


def make_proposer(parameters: Sequence[Parameter], settings: SearchSettings) -> OptunaProposer:
    """Make the proposer of a search's trials.

    Raises:
        FusionBenchError: The sampler cannot search this space, or needs a package.
    """
    check_sampler(parameters, settings.sampler)
    return OptunaProposer(parameters, optuna_sampler(settings.sampler, settings.seed))


#: Up to so many trials ``auto`` follows the values; beyond, it fills the space evenly.
MOST_FOLLOWED: Final = 100


def settle_sampler(settings: SearchSettings, parameters: Sequence[Parameter]) -> SearchSettings:
    """The settings with the sampler that ``auto`` stands for on this space."""
    if settings.sampler != "auto":
        return settings
    is_fixed = not any(parameter.when for parameter in parameters)
    sampler = "qmc" if settings.trials > MOST_FOLLOWED and is_fixed else "tpe"
    return settings.model_copy(update={"sampler": sampler})


#: Settings that may differ when a search is resumed: they decide when it ends.
RESUMABLE_SETTINGS: Final = {"trials", "timeout"}

TrialCallback = Callable[[Trial, Trial], None]


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The trials of a search.

    Attributes:
        trials: In the order in which they were asked for; the default is the first.
        interrupted: It was stopped before it was done.
    """

    trials: tuple[Trial, ...]
    interrupted: bool = False

    @property
    def default_trial(self) -> Trial:
        """The system as it is written."""
        return self.trials[0]

    @property
    def computed_trials(self) -> list[Trial]:
        """The trials that could be computed."""
        return [trial for trial in self.trials if not trial.is_failed]

    @property
    def best_trial(self) -> Trial:
        """The best; of equally good ones the first, so that nothing changes without a gain."""
        return max(self.computed_trials, key=lambda trial: trial.value)


def run_search(
    objective: TuningObjective,
    keep: BoolArray,
    settings: SearchSettings,
    *,
    on_trial: TrialCallback = lambda _trial, _best: None,
    log: Path | None = None,
) -> SearchResult:
    """Search a space on some of the queries.

    Args:
        objective: What is tuned.
        keep: Shape (Q,): the queries that may be looked at; the others are not even loaded.
        settings: Of the search.
        on_trial: Called after each trial with it and the best so far.
        log: Where finished trials are written, and looked up when the search was cut short.

    Raises:
        ConfigError: The default itself cannot be computed, the sampler cannot search this space,
            or the log belongs to another search.
    """
    part = select_queries(objective, keep)
    settings = settle_sampler(settings, part.parameters)
    record = open_trial_log(log, part, settings)
    interrupted = False
    try:
        _evaluate_trials(part, settings, record, on_trial)
    except KeyboardInterrupt:
        if not record.trials:
            raise
        interrupted = True
    return SearchResult(tuple(record.trials), interrupted)


def select_queries(objective: TuningObjective, keep: BoolArray) -> TuningObjective:
    """The objective on the queries where ``keep``, shape (Q,), is true.

    Raises:
        ConfigError: The default cannot be computed there.
    """
    part = objective.subset_queries(keep)
    if (reason := part.failure_reason(part.default_params)) is not None:
        raise ConfigError(f"tune: the default cannot be computed: {reason}")
    return part


def open_trial_log(
    path: Path | None, objective: TuningObjective, settings: SearchSettings
) -> TrialLog:
    """The log of a search.

    Args:
        path: The file; None = in memory only.
        objective: On the queries that are searched on.
        settings: Of the search.

    Raises:
        FusionBenchError: The file belongs to another search, or a line was edited.
    """
    if path is None:
        return TrialLog()
    limits = (0.0, 1.0) if objective.measure.is_bounded else UNLIMITED
    return TrialLog(path, search_fingerprint(objective, settings), limits)


def search_fingerprint(objective: TuningObjective, settings: SearchSettings) -> Fingerprint:
    """Fingerprint of all that decides the trials of a search and their values."""
    rules = settings.model_dump(mode="json", exclude=RESUMABLE_SETTINGS)
    return objective.fingerprint | Fingerprint.of_settings(rules)


def _evaluate_trials(
    part: TuningObjective,
    settings: SearchSettings,
    log: TrialLog,
    on_trial: TrialCallback,
) -> None:
    """The default, the presets, and what the sampler proposes."""
    deadline = time.monotonic() + (settings.timeout or math.inf)
    best: Trial | None = None

    def evaluate(batch: Sequence[Params], origin: TrialOrigin) -> list[float]:
        nonlocal best
        done = log.evaluate_params(part, batch, origin)
        for trial in done:
            best = max(best or trial, trial, key=lambda trial: trial.value)
            on_trial(trial, best)
        return [trial.value for trial in done]

    def room() -> int:
        """Number of trials in the next batch."""
        in_time = time.monotonic() < deadline
        return min(settings.batch, settings.trials - len(log.trials)) if in_time else 0

    default = part.default_params
    evaluate([default], "default")  # as it is written, its weights not normalized
    presets = [params for params in part.preset_params if params != default]
    evaluate(list(map(part.normalize_weights, presets[: settings.trials - 1])), "seed")
    tried = [(t.params, t.value) for t in log.trials if part.contains(t.params)]
    if settings.sampler in EXHAUSTIVE_SAMPLERS:
        known = [params for params, _ in tried]
        points = grid_points(part.parameters, settings, part.normalize_weights)
        fresh = (params for params in points if params not in known)
        while batch := list(itertools.islice(fresh, room())):
            evaluate(batch, "sampler")
        return
    proposer = make_proposer(part.parameters, settings)
    proposer.add_trials(tried)
    while count := room():
        proposer.tell(evaluate(list(map(part.normalize_weights, proposer.ask(count))), "sampler"))
