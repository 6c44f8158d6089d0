"""What speaks against a number: every warning of a collection, in the order that all pages have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fusion_bench.checks.dataset_facts import (
    FIRST_REPEAT,
    IGNORED_QUERIES,
    warn_ignored,
)
from fusion_bench.checks.judges import (
    MACHINE_JUDGE,
    OTHER_SCALE,
    SHARED_FAMILY,
    ListFamily,
    find_judge_warnings,
)
from fusion_bench.checks.lists import find_data_warnings
from fusion_bench.checks.query_warnings import (
    HELD_OUT,
    find_grade_warnings,
    warn_held_out,
    warn_near_duplicates,
    warn_synthetic,
)
from fusion_bench.checks.records import DataWarning, JudgeInfo, ListInfo, NearDuplicates
from fusion_bench.checks.unjudged import SPARSE
from fusion_bench.config.own_methods import NOT_REPLAYABLE, list_own
from fusion_bench.stats.comparison import MAX_UNJUDGED
from fusion_bench.util.formatting import format_percent, list_names

#: Version 2 was switched off on all sides.
V2_DISABLED: Final = "v2 disabled"
#: Keys of the warnings that stand before those of the lists …
BEFORE_LISTS: Final = (
    *(MACHINE_JUDGE, SHARED_FAMILY, OTHER_SCALE, "nothing relevant", "one grade"),
    *(HELD_OUT, "synthetic queries", IGNORED_QUERIES, "caveat", NOT_REPLAYABLE),
    *("v2 differs", V2_DISABLED),
)
#: … and of those that stand behind them.
AFTER_LISTS: Final = (
    *("near-duplicate queries", FIRST_REPEAT, "single trial", "unjudged", "unjudged share"),
    *("unjudged decide", "ties", "source ties"),
)
_V1: Final = "rrf_v2 ran as rrf without weights and bonus, and position_aware as replace."
#: Warn where ties decide the value of more of the queries than this.
MAX_TIED: Final = 0.05


def sort_warnings(warnings: Iterable[DataWarning]) -> list[DataWarning]:
    """The warnings in the order of every page: who judged, the queries, the lists, the results."""
    before = {key: number - len(BEFORE_LISTS) for number, key in enumerate(BEFORE_LISTS)}
    places = before | {key: number for number, key in enumerate(AFTER_LISTS, 1)}
    return sorted(warnings, key=lambda warning: places.get(warning.key, 0))


def find_warnings(
    runs: Sequence[ListInfo],
    queries: int,
    configs: Mapping[str, Mapping[str, Any]],
    measures: Sequence[str],
    *,
    judge: JudgeInfo | None,
    grades: Sequence[int],
    binary_relevance: int,
    judged_lists: Iterable[ListFamily] | None = None,
    synthetic: int = 0,
    ignored: int = 0,
    described: int | None = None,
    near_duplicates: NearDuplicates | None = None,
    first_trial: Iterable[str] = (),
) -> list[DataWarning]:
    """What speaks against the judge, the queries, the lists, and how systems read them.

    Args:
        runs: The lists that are read.
        queries: Number of evaluated queries.
        configs: Resolved configuration of each system, by name.
        measures: Names of the measures.
        judge: The machine judge; None = people.
        grades: The different grades of the evaluated queries, in ascending order.
        binary_relevance: The grade from which a document is relevant.
        judged_lists: Lists that the judge's family may have made; None = ``runs``.
        synthetic: Queries that a model wrote.
        ignored: Queries of the queries file that lists answer and nobody judged.
        described: Queries that the numbers describe; None = ``queries``.
        near_duplicates: Queries that depend on each other though no group says so.
        first_trial: What is of one trial alone, a sentence each.
    """
    return sort_warnings(
        (
            *find_judge_warnings(judge, runs if judged_lists is None else judged_lists),
            *find_grade_warnings(grades, binary_relevance, is_machine=judge is not None),
            *warn_held_out(runs),
            *warn_synthetic(synthetic),
            *warn_ignored(ignored, queries if described is None else described),
            *warn_own_methods(origin for config in configs.values() for origin in list_own(config)),
            *find_data_warnings(runs, queries, configs, measures),
            *warn_near_duplicates(near_duplicates),
            *(DataWarning(key=FIRST_REPEAT, text=text) for text in first_trial),
        )
    )


def prefix_warnings(start: str, warnings: Iterable[DataWarning]) -> Iterator[DataWarning]:
    """The same warnings, each text behind ``start``."""
    return (each.model_copy(update={"text": f"{start}{each.text}"}) for each in warnings)


def join_collections(warnings: Mapping[str, Iterable[DataWarning]]) -> Iterator[DataWarning]:
    """The warnings of each collection, by its name; of several, the collection comes first."""
    for name, each in warnings.items():
        yield from prefix_warnings(f"{name}: " if len(warnings) > 1 else "", each)


def merge_warnings(sides: Mapping[str, Sequence[DataWarning]]) -> Iterator[DataWarning]:
    """The warnings of two sides: those of both once, then those of one, which names it.

    Args:
        sides: Such as ``first report`` → its warnings.
    """
    counts = Counter(text for side in sides.values() for text in {each.text for each in side})
    first, _ = sides.values()
    yield from (each for each in first if counts[each.text] > 1)
    for name, side in sides.items():
        yield from prefix_warnings(f"In the {name}: ", (w for w in side if counts[w.text] == 1))


def warn_settings(settings: Mapping[str, Any], *, v2_enabled: bool) -> Iterator[DataWarning]:
    """What the experiment says against its numbers, and version 2 that is switched off."""
    if settings.get("caveat"):
        yield DataWarning(key="caveat", text=str(settings["caveat"]))
    yield from warn_own_methods((settings.get("measure_distributions") or {}).items())
    yield from warn_v2({"all systems": v2_enabled})


def warn_own_methods(origins: Iterable[tuple[str, str]]) -> Iterator[DataWarning]:
    """Own methods whose numbers their source alone does not give again.

    Args:
        origins: Each method with where it comes from, as a report names it.
    """
    for name, origin in dict.fromkeys(origins):
        if origin.startswith(NOT_REPLAYABLE):
            text = (
                f"{name} is {origin}: its source does not hold all that decides its numbers, so "
                "they cannot be computed again from this report"
            )
            evidence = {"method": name, "origin": origin}
            yield DataWarning(key=NOT_REPLAYABLE, text=text, evidence=evidence)


def warn_v2(sides: Mapping[str, bool]) -> Iterator[DataWarning]:
    """Where ``RAG_FUSION_V2_ENABLED`` was off; nothing where it was on everywhere.

    Args:
        sides: What is compared, such as ``baseline`` and ``candidate`` → whether version 2 ran.
    """
    off = [name for name, enabled in sides.items() if not enabled]
    on = [name for name in sides if name not in off]
    if off and on:
        text = (
            f"RAG_FUSION_V2_ENABLED was on for {' and '.join(on)} and off for "
            f"{' and '.join(off)}: there {_V1} Their difference contains that of the switch."
        )
        yield DataWarning(key="v2 differs", text=text, evidence=dict(sides))
    elif off:
        text = f"RAG_FUSION_V2_ENABLED is off: {_V1}"
        yield DataWarning(key=V2_DISABLED, text=text, evidence=dict(sides))


def warn_unjudged(
    shares: Mapping[str, float],
    judgments: str | None,
    *,
    is_sparse: bool = False,
    key: str = "unjudged",
) -> Iterator[DataWarning]:
    """Where too many documents are unjudged to trust a measure.

    Args:
        shares: System → share of unjudged documents in its top 10.
        judgments: What an unjudged document means; None = not declared.
        is_sparse: Whether no document is judged not relevant.
        key: Of the warning.
    """
    many = {name: share for name, share in shares.items() if share > MAX_UNJUDGED}
    if many and judgments != "complete":
        sparse = f" {SPARSE}" if is_sparse else ""
        text = (
            f"More than {MAX_UNJUDGED:.0%} of the top 10 is unjudged for {list_names([*many])} "
            f"(at most {format_percent(max(many.values()))}). Relevant documents may count as "
            f"not relevant.{sparse}"
        )
        yield DataWarning(key=key, text=text, evidence={"unjudged_shares": many})


def warn_ties(
    key: str, counts: Mapping[str, int], measure: str, total: int
) -> Iterator[DataWarning]:
    """Ties that decide the value of many queries.

    Args:
        key: ``ties`` of the final lists, or ``source ties`` inside the lists that are read.
        counts: System → queries whose value depends on them.
        measure: The measure.
        total: Queries.
    """
    tied = {name: count for name, count in counts.items() if count > MAX_TIED * total}
    where = "in the final lists" if key == "ties" else "inside the lists that are read"
    if tied:
        text = (
            f"The order of documents with equal scores {where} changes {measure} on more than "
            f"{MAX_TIED:.0%} of the queries for {list_names([*tied])} (at most "
            f"{max(tied.values()):,} of {total:,})."
        )
        evidence = {"measure": measure, "affected_queries": tied, "queries": total}
        yield DataWarning(key=key, text=text, evidence=evidence)
