"""The warnings of every command about its input lists, and about systems that read them wrongly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fusion_bench.evaluation.list_checks.list_notes import list_warnings
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.report_records.list_info import ListInfo
from fusion_bench.util.formatting import list_names, pluralize

#: Unjudged queries beyond this part of the evaluated ones are a larger list, and no mistake.
MAX_UNMATCHED: Final = 0.1
#: Normalizers that leave scores below 0 there.
KEEPS_SIGN: Final = frozenset({"none", "max", "l2", "arctan"})


def find_data_warnings(
    runs: Sequence[ListInfo],
    queries: int,
    configs: Mapping[str, Mapping[str, Any]],
    measures: Sequence[str],
) -> Iterator[DataWarning]:
    """What a reader should know of the lists before trusting a number made from them.

    Args:
        runs: The lists.
        queries: Number of evaluated queries.
        configs: Resolved configuration of each system, by name.
        measures: Names of the measures.
    """
    yield from find_list_warnings(runs, queries)
    yield from _find_cut_measures(configs, measures)
    yield from _find_negative_scores(runs, configs)


def find_list_warnings(runs: Sequence[ListInfo], queries: int) -> Iterator[DataWarning]:
    """What is doubtful of the lists alone.

    Args:
        runs: The lists.
        queries: Number of evaluated queries.
    """
    for run in runs:
        for key, text in list_warnings(run, MAX_UNMATCHED * queries):
            yield DataWarning(key=key, text=text)


def _find_cut_measures(
    configs: Mapping[str, Mapping[str, Any]], measures: Sequence[str]
) -> Iterator[DataWarning]:
    """Measures that look deeper than ``top_k`` lets a system's list go."""
    systems: dict[int, list[str]] = {}
    for name, config in configs.items():
        if (top_k := config.get("top_k")) is not None:
            systems.setdefault(top_k, []).append(name)
    # A measure without a cutoff looks at all ranks.
    cutoffs = {name: name.rpartition("@")[2] for name in measures}
    for top_k, names in systems.items():
        deeper = [
            n for n, cutoff in cutoffs.items() if not cutoff.isdecimal() or int(cutoff) > top_k
        ]
        if deeper:
            text = (
                f"top_k cuts the lists of {list_names(names)} to {pluralize(top_k, 'document')}: "
                f"{' and '.join(deeper)} cannot see relevant documents below."
            )
            yield DataWarning(key="top_k", text=text)


def _find_negative_scores(
    runs: Sequence[ListInfo], configs: Mapping[str, Mapping[str, Any]]
) -> Iterator[DataWarning]:
    """Systems for which absence from a list beats a score below 0 in it."""
    lowest: dict[str, float] = {}
    for info in runs:  # one a trial
        lowest[info.name] = min(info.lowest_score or 0.0, lowest.get(info.name, 0.0))
    systems: list[str] = []
    lists: dict[str, None] = {}
    for name, config in configs.items():
        fusion = config.get("fusion") or {}
        is_zero = fusion.get("missing") == "zero" or fusion.get("method") == "comb_sum"
        normalize = fusion.get("normalize") or "none"
        method = normalize if isinstance(normalize, str) else normalize.get("method")
        negative = [run for run in config.get("runs", ()) if lowest.get(run, 0.0) < 0]
        if is_zero and method in KEEPS_SIGN and negative and len(config["runs"]) > 1:
            systems.append(name)
            lists |= dict.fromkeys(negative)
    if systems:
        text = (
            f"{list_names([*lists])} with scores below 0: in {list_names(systems)} an absent "
            "document counts 0, so it stands above one that the list returned with less."
        )
        yield DataWarning(key="missing zero", text=text)
