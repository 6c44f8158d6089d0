"""What to know before the order of a list is believed, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.evaluation.report_records.list_info import ListInfo
from fusion_bench.util.formatting import format_number, pluralize


def order_notes(info: ListInfo) -> Iterator[tuple[str, str]]:
    """Reversed and constant lists, opposed rank columns, 32-bit floats; each with its key."""
    if info.is_reversed:
        yield (
            "reversed",
            f"{info.name} seems to be read backwards: nDCG@10 {format_number(info.mean_as_read)}, "
            f"from its end {format_number(info.mean_backwards)}. A greater score must be better: "
            "negate distances.",
        )
    if info.constant_lists:
        yield (
            "constant lists",
            f"{info.name} gives all documents one score for "
            f"{pluralize(info.constant_lists, 'judged query')}. The tie rule alone orders them.",
        )
    if 2 * info.opposed_rank_lists > info.rank_column_lists:
        yield (
            "rank column",
            f"The rank column of {info.name} opposes its scores in {info.opposed_rank_lists:,} of "
            f"the first {pluralize(info.rank_column_lists, 'list')}. Scores decide. Negate them "
            "if they are distances, or set rank_from: column.",
        )
    if info.float32_queries:
        yield (
            "float32",
            f"trec_eval orders {info.name} otherwise for "
            f"{pluralize(info.float32_queries, 'judged query')}, because it compares scores as "
            "32-bit floats.",
        )
