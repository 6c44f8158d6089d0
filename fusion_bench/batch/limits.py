"""Sizes at which the batch engine computes another way; tests make them small."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BatchLimits:
    """Limits of the batch engine: they bound its time and memory, and change no value.

    Attributes:
        counted_relevant: A query with more relevant candidates is sorted: a sort of its candidates
            costs about as much as counting for so many.
        layout_pairs: Pairs looked at at once while the pairs of a view are laid out.
        counted_pairs: Pairs that numpy counts at once: they stay in the second-level cache.
        pool_candidates: Candidates of one table of sorted queries: they stay there as well.
        pool_margin: Places sorted beyond those asked for: neighbors of the last ones matter too.
        partition_factor: A sort of fewer candidates than so many times the places asked for costs
            less than a partition.
        bits_apart: Positive float64 scores with different keys are further apart than this, read
            as integers: see ``KEY_STEP``, and a little for their own rounding. A unit in the last
            place is at least 2^-53 of a number.
        native_tables: Terms of a sum that the loop in C has room for.
        max_rank: Longest table of terms by rank; systems of deeper runs are not supported.
        joined_entries: Entries of a table of two columns: it fits the second-level cache.
        block_candidates: Candidates of one block of sorted lists: they stay there as well.
        narrow_width: Lists beyond this length need keys of 64 bits.
        spare_places: Places kept beyond the depth of a blend, so that doubts across it can be
            resolved.
        compared_relevant: With more relevant documents a list, they are searched for.
        fusions: Fusions whose lists are sorted together, block by block.
        window_documents: Documents that are blended at once: they stay in the second-level cache.
        compared_pairs: Comparisons of blended documents at once.
    """

    counted_relevant: int = 24
    layout_pairs: int = 500_000
    counted_pairs: int = 4_000
    pool_candidates: int = 100_000
    pool_margin: int = 28
    partition_factor: int = 2
    bits_apart: int = int(2.1e-11 * 2**53) + 1
    native_tables: int = 16
    max_rank: int = 1 << 16
    joined_entries: int = 1 << 14
    block_candidates: int = 1 << 16
    narrow_width: int = 1 << 9
    spare_places: int = 12
    compared_relevant: int = 24
    fusions: int = 8
    window_documents: int = 1 << 14
    compared_pairs: int = 1 << 20
