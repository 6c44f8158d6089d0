"""What speaks against a number: every warning of a collection, in the order that all pages have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import Any, Final

from fusion_bench.checks.judges import (
    MACHINE_JUDGE,
    OTHER_SCALE,
    SHARED_FAMILY,
    ListFamily,
    find_judge_warnings,
)
from fusion_bench.checks.obstacles import find_meeting_warnings, propose_order
from fusion_bench.checks.query_warnings import HELD_OUT, describe_near_duplicates, warn_held_out
from fusion_bench.checks.records import DataWarning, JudgeInfo, ListInfo, NearDuplicates
from fusion_bench.checks.unjudged import SPARSE
from fusion_bench.config.own_methods import NOT_REPLAYABLE, list_own
from fusion_bench.data.qrels import format_unmatched_ids
from fusion_bench.data.records import format_condition
from fusion_bench.io.provenance import describe_unread
from fusion_bench.stats.unjudged import MAX_UNJUDGED
from fusion_bench.util.formatting import format_number, format_percent, list_names, pluralize

#: Keys of warnings: what is of one repeat alone, and what nobody judged.
FIRST_REPEAT: Final = "first trial"
IGNORED_QUERIES: Final = "queries without judgments"
#: What was read in another way than a reader of the file may expect.
AS_READ: Final = "as read"
#: The nature of the judgments, and no fault of them: pages say it without alarm.
SPARSE_JUDGMENTS: Final = "sparse judgments"
#: Version 2 was switched off on all sides.
V2_DISABLED: Final = "v2 disabled"
#: Keys of the warnings that stand before those of the lists …
BEFORE_LISTS: Final = (
    *("unmatched documents", "disjoint lists", "few judged documents"),
    *(MACHINE_JUDGE, SHARED_FAMILY, OTHER_SCALE, "nothing relevant", "one grade"),
    *(HELD_OUT, "synthetic queries", IGNORED_QUERIES, "caveat", NOT_REPLAYABLE),
    *("v2 differs", V2_DISABLED),
)
#: … and of those that stand behind them.
AFTER_LISTS: Final = (
    *(
        AS_READ,
        "near-duplicate queries",
        FIRST_REPEAT,
        "single trial",
        SPARSE_JUDGMENTS,
        "unjudged",
    ),
    *("unjudged share", "unjudged decide", "ties", "source ties"),
)
_V1: Final = "If it is off, rrf_v2 is rrf without weights and bonus, position_aware is replace."
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
    judgment_notes: Sequence[str] = (),
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
        judgment_notes: What was read of the judgments in another way than may be expected.
    """
    return sort_warnings(
        (
            *find_judge_warnings(judge, runs if judged_lists is None else judged_lists),
            *find_grade_warnings(grades, binary_relevance, is_machine=judge is not None),
            *warn_held_out(runs),
            *warn_synthetic(synthetic),
            *warn_ignored(ignored, queries if described is None else described),
            *_warn_own_methods(
                origin for config in configs.values() for origin in list_own(config)
            ),
            *find_data_warnings(runs, queries, configs, measures),
            *warn_as_read("The judgments", judgment_notes),
            *warn_near_duplicates(near_duplicates),
            *(DataWarning(key=FIRST_REPEAT, text=text) for text in first_trial),
        )
    )


def _prefix_warnings(start: str, warnings: Iterable[DataWarning]) -> Iterator[DataWarning]:
    """Put ``start`` before the text of each warning."""
    return (each.model_copy(update={"text": f"{start}{each.text}"}) for each in warnings)


def join_collections(warnings: Mapping[str, Iterable[DataWarning]]) -> Iterator[DataWarning]:
    """The warnings of each collection, by its name; of several, the collection comes first."""
    for name, each in warnings.items():
        yield from _prefix_warnings(f"{name}: " if len(warnings) > 1 else "", each)


def merge_warnings(sides: Mapping[str, Sequence[DataWarning]]) -> Iterator[DataWarning]:
    """The warnings of two sides: those of both once, then those of one, which names it.

    Args:
        sides: Such as ``first report`` → its warnings.
    """
    counts = Counter(text for side in sides.values() for text in {each.text for each in side})
    first, _ = sides.values()
    yield from (each for each in first if counts[each.text] > 1)
    for name, side in sides.items():
        yield from _prefix_warnings(f"In the {name}: ", (w for w in side if counts[w.text] == 1))


def warn_as_read(title: str, notes: Sequence[str]) -> Iterator[DataWarning]:
    """The warning of a file that was read in another way than may be expected; none without notes.

    Args:
        title: What the text calls the file.
        notes: A sentence each.
    """
    if notes:
        text = f"{title} as read: {'; '.join(note.rstrip('.') for note in notes)}."
        yield DataWarning(key=AS_READ, text=text, evidence={"notes": [*notes]})


def warn_near_duplicates(*records: NearDuplicates | None) -> Iterator[DataWarning]:
    """The warnings of queries that depend on each other though no group says so; None = none."""
    for record in records:
        if record is not None:
            text = describe_near_duplicates(record)
            evidence = record.model_dump(mode="json")
            yield DataWarning(key="near-duplicate queries", text=text, evidence=evidence)


def warn_synthetic(count: int) -> Iterator[DataWarning]:
    """The warning of every report on synthetic queries; nothing for none."""
    if count:
        yield DataWarning(
            key="synthetic queries",
            text=(
                f"A model wrote the queries ({count:,}) from documents of the collection. What "
                "holds on them may not hold on what users ask."
            ),
            evidence={"queries": count},
        )


def find_grade_warnings(
    grades: Sequence[int], binary_relevance: int, *, is_machine: bool
) -> Iterator[DataWarning]:
    """What makes the values of all systems alike.

    People's files often list relevant documents alone. So one grade is remarkable only where a
    machine graded, which was asked about other documents, too.

    Args:
        grades: The different grades of the evaluated queries, in ascending order; empty = not
            known.
        binary_relevance: The grade from which a document is relevant.
        is_machine: Whether a machine gave the grades.
    """
    if not grades:
        return
    if grades[-1] < binary_relevance:
        text = (
            f"No document is relevant from grade {binary_relevance}, so RR and R are 0 for every "
            f"system. The highest grade of the evaluated queries is {grades[-1]}: check "
            "'binary_relevance' of dataset.yaml, and the grades."
        )
        evidence = {"binary_relevance": binary_relevance, "highest_grade": grades[-1]}
        yield DataWarning(key="nothing relevant", text=text, evidence=evidence)
    if len(grades) == 1 and is_machine:
        text = (
            f"The machine judge gave every judged document grade {grades[0]}. Such grades tell no "
            "document from another."
        )
        yield DataWarning(key="one grade", text=text, evidence={"grade": grades[0]})


def warn_ignored(count: int, evaluated: int) -> Iterator[DataWarning]:
    """The warning of a report; nothing where no query is left out.

    Args:
        count: Queries of the queries file that lists answer and nobody judged.
        evaluated: Queries that the numbers describe.
    """
    if count:
        verb, they = ("has", "it is") if count == 1 else ("have", "they are")
        yield DataWarning(
            key=IGNORED_QUERIES,
            text=(
                f"{pluralize(count, 'query')} of the queries file {verb} no judgment, so {they} "
                f"left out. The numbers describe {pluralize(evaluated, 'query')} of "
                f"{count + evaluated:,}. To judge more: fusion-bench judge."
            ),
            evidence={"queries": count, "evaluated": evaluated},
        )


def warn_settings(settings: Mapping[str, Any], *, v2_enabled: bool) -> Iterator[DataWarning]:
    """What the experiment says against its numbers, and version 2 that is switched off."""
    if settings.get("caveat"):
        yield DataWarning(key="caveat", text=str(settings["caveat"]))
    yield from _warn_own_methods((settings.get("measure_distributions") or {}).items())
    yield from warn_v2({"all systems": v2_enabled})


def _warn_own_methods(origins: Iterable[tuple[str, str]]) -> Iterator[DataWarning]:
    """Own methods whose numbers their source alone does not give again.

    Args:
        origins: Each method with where it comes from, as a report names it.
    """
    for name, origin in dict.fromkeys(origins):
        if origin.startswith(NOT_REPLAYABLE):
            text = (
                f"{name} cannot be computed again from this report. It is {origin}: "
                "its source does not hold all that decides its numbers."
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
            f"{' and '.join(off)}. {_V1} Their difference contains that of the switch."
        )
        yield DataWarning(key="v2 differs", text=text, evidence=dict(sides))
    elif off:
        text = f"RAG_FUSION_V2_ENABLED is off, so v2 ran as v1. {_V1}"
        yield DataWarning(key=V2_DISABLED, text=text, evidence=dict(sides))


def warn_unjudged(
    shares: Mapping[str, float],
    judgments: str | None,
    *,
    is_sparse: bool = False,
    key: str = "unjudged",
) -> Iterator[DataWarning]:
    """Yield the warning of many unjudged documents; of sparse judgments, that they are sparse.

    Args:
        shares: System → share of unjudged documents in its top 10.
        judgments: What an unjudged document means; None = not declared.
        is_sparse: Whether no document is judged not relevant.
        key: Of the warning.
    """
    many = {name: share for name, share in shares.items() if share > MAX_UNJUDGED}
    if not many or judgments == "complete":
        return
    text = (
        f"Up to {format_percent(max(many.values()))} of the top 10 is unjudged in "
        f"{pluralize(len(many), 'system')}; some may be relevant. More than {MAX_UNJUDGED:.0%}: "
        f"{list_names([*many])}."
    )
    if is_sparse or judgments == "sparse":
        key, ends = (
            SPARSE_JUDGMENTS,
            [f"{100 - 100 * end(shares.values()):.0f}" for end in (max, min)],
        )
        text = (
            f"Judgments are sparse: {'–'.join(dict.fromkeys(ends))} % of the top 10; others count "
            "as not relevant. So a difference assumes that documents without a judgment are not "
            f"relevant.{f' {SPARSE}' if is_sparse else ''}"
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
    where = "the final lists" if key == "ties" else "the lists that are read"
    if tied:
        text = (
            f"Ties in {where} change {measure} on up to {max(tied.values()):,} of "
            f"{pluralize(total, 'query')}. The order of documents with equal scores decides there; "
            f"more than {MAX_TIED:.0%} of the queries: {list_names([*tied])}."
        )
        evidence = {"measure": measure, "affected_queries": tied, "queries": total}
        yield DataWarning(key=key, text=text, evidence=evidence)


def find_list_warnings(
    info: ListInfo, most_unmatched: float, *, is_judged: bool = True
) -> Iterator[DataWarning]:
    """What is doubtful of a list: no answers, other ids, padding, order.

    Args:
        info: The list.
        most_unmatched: More unjudged queries that resemble no judged one are no mistake.
        is_judged: Whether anything is; else all queries of the dataset are meant.
    """
    is_source = info.kind == "run"
    if info.on_queries == 0:
        condition = format_condition(info.when)
        text = f"{info.title} is on for no judged query (when: {condition})."
        yield _warn(info, "switched off", text, "on_queries")
    if info.unanswered_queries:
        effect = "alone it scores 0 there" if is_source else "these keep their fused order"
        count = pluralize(info.unanswered_queries, "judged query" if is_judged else "query")
        text = f"{info.title} has no result for {count}; {effect}."
        yield _warn(info, "unanswered", text, "unanswered_queries")
    is_few = info.unjudged_queries <= most_unmatched
    if info.unmatched_queries and (is_few or any(meant for _, meant in info.unmatched_queries)):
        count = pluralize(info.unjudged_queries, "unjudged query")
        ids = format_unmatched_ids(info.unmatched_queries, info.unjudged_queries)
        text = f"{info.title} has {count}, left out here. Ids: {ids}."
        yield _warn(info, "unmatched queries", text, "unjudged_queries", "unmatched_queries")
    if not info.has_judged_documents:
        text = (
            f"No document of {info.title} is judged. Check that all files use the same document "
            "ids."
        )
        yield _warn(info, "unmatched documents", text, "has_judged_documents")
    if is_source and info.zero_scores and not info.read_options.get("drop_zero_scores"):
        text = (
            f"{info.title} has {pluralize(info.zero_scores, 'row')} with score 0, probably "
            "padding. Fusion counts padding as results. See drop_zero_scores."
        )
        yield _warn(info, "zero scores", text, "zero_scores")
    yield from warn_as_read(info.title, info.notes)
    yield from _find_order_warnings(info)
    yield from _find_rerank_warnings(info)


def _find_rerank_warnings(info: ListInfo) -> Iterator[DataWarning]:
    """What a provider did not score, or not readably, and what the scores look like."""
    if info.degraded_queries:
        count = pluralize(info.degraded_queries, "query")
        provider = info.provider or "its provider"
        text = f"{info.title} is degraded: {count} not, or not fully, scored by {provider}."
        yield _warn(info, "degraded", text, "degraded_queries", "provider")
    if info.unread_scores:
        count = pluralize(sum(map(len, info.unread_scores.values())), "score")
        places = describe_unread(info.unread_scores)
        text = f"{info.title} has {count} that could not be read: {places}."
        yield _warn(info, "unread scores", text, "unread_scores")
    for note in info.problems:
        yield _warn(info, "scores", f"{note[0].upper()}{note[1:]}.")


def _find_order_warnings(info: ListInfo) -> Iterator[DataWarning]:
    """Reversed and constant lists, opposed rank columns, 32-bit floats."""
    if info.is_reversed:
        text = (
            f"{info.title} seems to be read backwards: nDCG@10 {format_number(info.mean_as_read)}, "
            f"from its end {format_number(info.mean_backwards)}. {_propose_order(info)}."
        )
        yield _warn(info, "reversed", text, "mean_as_read", "mean_backwards")
    if info.constant_lists:
        rule = "tie rule" if info.score_space in {None, "order"} else "fused order"
        text = (
            f"{info.title} gives all documents one score for "
            f"{pluralize(info.constant_lists, 'judged query')}. The {rule} alone orders them."
        )
        yield _warn(info, "constant lists", text, "constant_lists")
    if 2 * info.opposed_rank_lists > info.rank_column_lists:
        text = (
            f"The rank column of {info.title} opposes its scores in {info.opposed_rank_lists:,} of "
            f"the first {pluralize(info.rank_column_lists, 'list')}. Scores decide. "
            f"{_propose_order(info)}, or set rank_from: column."
        )
        yield _warn(info, "rank column", text, "opposed_rank_lists", "rank_column_lists")
    if info.own_id_queries:
        text = (
            f"{info.title} returns the query itself first for "
            f"{pluralize(info.own_id_queries, 'query')}. It is not judged relevant. "
            f"drop_own_id: nDCG@10 {format_number(info.mean_with_own_ids)} → "
            f"{format_number(info.mean_without_own_ids)}. Write 'drop_own_id: true' beside its "
            f"path in dataset.yaml, or give --drop-own-id {quote(info.name)}."
        )
        fields = ("own_id_queries", "mean_with_own_ids", "mean_without_own_ids")
        yield _warn(info, "own ids", text, *fields)
    if info.float32_queries:
        text = (
            f"trec_eval orders {info.title} otherwise for "
            f"{pluralize(info.float32_queries, 'judged query')}. It compares scores as 32-bit "
            "floats."
        )
        yield _warn(info, "float32", text, "float32_queries")


def _propose_order(info: ListInfo) -> str:
    """How the scores of a list are read in the opposite order."""
    what, order = propose_order(info)
    return (
        f"If its scores are {what}, write 'order: {order}' beside its path in dataset.yaml or give "
        f"--order {quote(info.name)}={order}"
    )


def _warn(info: ListInfo, key: str, text: str, *fields: str) -> DataWarning:
    """A warning of a list, with the fields of its record that the text rests on."""
    record = info.model_dump(mode="json", include={"name", "trial", *fields}, exclude_none=True)
    return DataWarning(key=key, text=text, evidence=record)


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
    for run in runs:
        yield from find_list_warnings(run, MAX_UNMATCHED * queries)
    yield from find_meeting_warnings(runs)
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
                f"{' and '.join(deeper)} cannot see relevant documents below rank {top_k:,}. There "
                f"top_k cuts the lists of {list_names(names)}."
            )
            evidence = {"top_k": top_k, "systems": names, "measures": deeper}
            yield DataWarning(key="top_k", text=text, evidence=evidence)
    yield from _find_negative_scores(runs, configs)


def _find_negative_scores(
    runs: Sequence[ListInfo], configs: Mapping[str, Mapping[str, Any]]
) -> Iterator[DataWarning]:
    """Systems for which absence from a list beats a score below 0 in it."""
    lowest: dict[str, float] = {}
    for info in runs:  # one a trial
        lowest[info.name] = min(info.lowest_score or 0.0, lowest.get(info.name, 0.0))
    systems: list[str] = []
    lists: dict[str, float] = {}
    for name, config in configs.items():
        fusion = config.get("fusion") or {}
        is_zero = fusion.get("missing") == "zero" or fusion.get("method") == "comb_sum"
        normalize = fusion.get("normalize") or "none"
        method = normalize if isinstance(normalize, str) else normalize.get("method")
        negative = [run for run in config.get("runs", ()) if lowest.get(run, 0.0) < 0]
        if is_zero and method in KEEPS_SIGN and negative and len(config["runs"]) > 1:
            systems.append(name)
            lists |= {name: lowest[name] for name in negative}
    if systems:
        text = (
            f"An absent document outranks returned ones in {pluralize(len(systems), 'system')}. "
            f"In {list_names(systems)} it counts 0, but scores fall below 0 in "
            f"{list_names([*lists])}."
        )
        evidence = {"lowest_scores": lists, "systems": systems}
        yield DataWarning(key="missing zero", text=text, evidence=evidence)
