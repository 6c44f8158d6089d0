"""What a search changed, in words: ``k 60 → 23, question ×2 → ×1.4``."""

from __future__ import annotations

import re
from typing import Any, Final

from fusion_bench.experiment.system_words import list_by_rank, shorten
from fusion_bench.report import tuning_records as records

#: So many changed parameters are listed; of more the rest is counted.
MAX_CHANGES: Final = 8
#: A condition inside a path: ``fusion(rrf).k``.
CONDITION: Final = re.compile(r"\([^)]*\)")
#: A path, with the class of queries or the stage that it is of.
SCOPE: Final = re.compile(
    r"(?:(?:by_query_type|by_intent|stages)\.([^.]+)\.|(?=weights_by_type\.([^.]+)))?(.+)"
)
#: The weight of a list.
WEIGHT: Final = re.compile(r"(?:weights_by_type\.[^.]+|fusion\.weights)\.(.+)")
#: An entry of a table by last rank.
ENTRY: Final = re.compile(r"(.+)\.(\d+)\.(?:value|ranks)")
#: Path → its words.
LABELS: Final = {
    "blend.depth": "rerank depth",
    "blend.method": "blend",
    "blend.rest": "retrieval share below",
    "blend.tiers": "retrieval share",
    "collapse.k": "collapse k",
    "collapse.keep": "chunks kept",
    "collapse.place": "collapse",
    "collapse.score": "document score",
}


def describe_changes(report: records.TuningReport) -> str:
    """Return what the tuned system has in place of the default's values; empty = nothing."""
    texts = (_describe_change(report, parameter) for parameter in report.parameters)
    changes = list(dict.fromkeys(filter(None, texts)))
    more = len(changes) - MAX_CHANGES
    return ", ".join(changes[:MAX_CHANGES]) + (f" and {more} more" if more > 0 else "")


def _describe_change(report: records.TuningReport, parameter: records.ParameterInfo) -> str:
    """One change; empty where the value is the default's, or the tuned system has none."""
    path = CONDITION.sub("", parameter.path)
    query_class, weights_class, place = SCOPE.findall(path)[0]
    if entry := ENTRY.fullmatch(place):
        names, index = path.rsplit(".", 2)[0].split("."), int(entry[2]) - 1
        (ranks, old), (new_ranks, new) = (
            _find_entry(config, names, index) for config in (report.default, report.choice.config)
        )
        label = f"{_name_place(entry[1])} at {ranks or new_ranks}"
        new = f"at {new_ranks} {new}" if "" != ranks != new_ranks != "" else new
    else:
        values = _scale_default(report, parameter), report.choice.params.get(parameter.path)
        old, new = ("" if value is None else shorten(value) for value in values)
        label = _name_place(place)
        if weight := WEIGHT.fullmatch(place):
            label, old, new = weight[1], old and f"×{old}", new and f"×{new}"
    if new in {"", old}:
        return ""
    scope = query_class or weights_class
    return f"{scope + ': ' if scope else ''}{label} {old or 'none'} → {new}"


def _name_place(place: str) -> str:
    words = LABELS.get(place, place.removeprefix("fusion.").removeprefix("blend."))
    return words.replace("_", " ").replace(".", " of ")


def _find_entry(config: Any, names: list[str], index: int) -> tuple[str, str]:  # noqa: ANN401 - JSON
    """The ranks and the value of an entry of a table; empty where there is none."""
    for name in names:
        config = (config or {}).get(name)
    table = {int(last): value for last, value in (config or {}).items()}
    entries = [(ranks, shorten(value)) for ranks, value in list_by_rank(table)]
    return entries[index] if index < len(entries) else ("", "")


def _scale_default(report: records.TuningReport, parameter: records.ParameterInfo) -> records.Value:
    """The default's value; weights that only count as a ratio are on the scale of the tuned."""
    if not parameter.ratio or not isinstance(parameter.default, int | float):
        return parameter.default
    group = parameter.path.rpartition(".")[0]
    same = [each for each in report.parameters if each.path.rpartition(".")[0] == group]
    tuned = [report.choice.params.get(each.path) for each in same]
    greatest = max((v for v in tuned if isinstance(v, int | float)), default=1)
    defaults = [each.default for each in same]
    of_default = max((v for v in defaults if isinstance(v, int | float)), default=1)
    return parameter.default * greatest / of_default if of_default else parameter.default
