"""Measures of binary relevance: AP, RR, recall, precision, success, share of judged documents."""

from __future__ import annotations

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.measures import rankings
from fusion_bench.measures._base import BinaryMeasure, Measure, measure_classes


@measure_classes.register
class AveragePrecision(BinaryMeasure):
    """``AP``: precision summed at relevant documents, over all relevant ones.

    Source: trec_eval's m_map and m_map_cut.
    """

    required_ranks = "relevant"

    method: str = "AP"

    def compute_values(self, ranking: rankings.Ranking) -> FloatArray:
        """(Q,): 0 where nothing is relevant."""
        rows = ranking.relevant(self.rel).within_cutoff(self.cutoff)
        precision = rankings.count_in_groups(rows.query) / rows.position
        total = np.bincount(rows.query, precision, minlength=ranking.size)
        return rankings.divide_or_zero(total, rankings.relevant_counts(ranking.runs, self.rel))

    def expected_value(self, lists: rankings.TiedLists, depth: IntArray) -> FloatArray:
        """(Q,): the sum of E[relevant at i · precision at i] over the ranks i.

        The j-th member of a group behind R relevant documents is relevant with probability r/n;
        given that, each of the j − 1 members before it is with (r − 1)/(n − 1).
        """
        relevant = lists.sum_by_group(lists.grade >= self.rel)
        running = np.cumsum(relevant) - relevant
        earlier = running - running[np.searchsorted(lists.owner, lists.owner)]  # of its own query
        r, n = relevant[lists.group], lists.members[lists.group]
        others = (lists.position - lists.before[lists.group] - 1) * (r - 1) / np.maximum(n - 1, 1)
        terms = r / n * (earlier[lists.group] + 1 + others) / lists.position
        terms[lists.position > depth[lists.query]] = 0
        return rankings.divide_or_zero(
            lists.by_query(terms), rankings.relevant_counts(lists.runs, self.rel)
        )

    def filled_values(self, returned: rankings.ReturnedDocuments) -> FloatArray:
        """(Q,): Σ_r p_r (1 + Σ_{s<r} p_s) / r over the relevant ones, at most 1."""
        p = returned.fill_gains(returned.grade >= self.rel, self.cutoff)
        terms = p * (1 + np.cumsum(p, axis=1) - p) / np.arange(1, p.shape[1] + 1)
        relevant = rankings.relevant_counts(returned.runs, self.rel)
        return np.minimum(rankings.divide_or_zero(terms.sum(axis=1), relevant), 1)


@measure_classes.register
class ReciprocalRank(BinaryMeasure):
    """``RR``: one over the rank of the first relevant document (trec_eval's m_recip_rank)."""

    required_ranks = "relevant"

    method: str = "RR"

    def compute_values(self, ranking: rankings.Ranking) -> FloatArray:
        """(Q,): 0 where nothing relevant is returned within the cutoff."""
        rows = ranking.relevant(self.rel).within_cutoff(self.cutoff)
        first = rows.select_rows(rankings.count_in_groups(rows.query) == 1)
        values = np.zeros(ranking.size)
        values[first.query] = 1 / first.position
        return values

    def expected_value(self, lists: rankings.TiedLists, depth: IntArray) -> FloatArray:
        """(Q,): by where the first relevant document falls."""
        return lists.expect_at_first(lists.grade >= self.rel, depth, lambda rank: 1 / rank)

    def filled_values(self, returned: rankings.ReturnedDocuments) -> FloatArray:
        """(Q,): Σ_r p_r / r · Π_{s<r} (1 − p_s), p_r the probability that r is relevant."""
        p = returned.fill_gains(returned.grade >= self.rel, self.cutoff)
        return np.asarray((p * rankings.none_before(p) / np.arange(1, p.shape[1] + 1)).sum(axis=1))


class _RelevantInTop(BinaryMeasure):
    """A measure that depends on the number of relevant documents within the cutoff alone."""

    needs_cutoff = True
    required_ranks = "relevant"

    def _count_relevant(self, ranking: rankings.Ranking) -> IntArray:
        rows = ranking.relevant(self.rel).within_cutoff(self.cutoff)
        return np.bincount(rows.query, minlength=ranking.size)

    def _expected_count(self, lists: rankings.TiedLists, depth: IntArray) -> FloatArray:
        return lists.by_query(lists.mean_by_rank(lists.grade >= self.rel, depth))

    def _filled_gains(self, returned: rankings.ReturnedDocuments) -> FloatArray:
        """(Q, L): the probability that each rank within the cutoff is relevant."""
        return returned.fill_gains(returned.grade >= self.rel, self.cutoff)


@measure_classes.register
class Recall(_RelevantInTop):
    """``R``: the share of all relevant documents within the cutoff (trec_eval's m_recall)."""

    method: str = "R"

    def compute_values(self, ranking: rankings.Ranking) -> FloatArray:
        """(Q,): 0 where nothing is relevant."""
        return rankings.divide_or_zero(
            self._count_relevant(ranking), rankings.relevant_counts(ranking.runs, self.rel)
        )

    def expected_value(self, lists: rankings.TiedLists, depth: IntArray) -> FloatArray:
        """(Q,): every member of a group counts as the group's mean."""
        return rankings.divide_or_zero(
            self._expected_count(lists, depth), rankings.relevant_counts(lists.runs, self.rel)
        )

    def filled_values(self, returned: rankings.ReturnedDocuments) -> FloatArray:
        """(Q,): the expected number of relevant documents over the known ones, at most 1."""
        count = self._filled_gains(returned).sum(axis=1)
        return np.minimum(
            rankings.divide_or_zero(count, rankings.relevant_counts(returned.runs, self.rel)), 1
        )


@measure_classes.register
class Precision(_RelevantInTop):
    """``P``: relevant documents over the cutoff, however short the list is (trec_eval's m_P)."""

    method: str = "P"

    def compute_values(self, ranking: rankings.Ranking) -> FloatArray:
        """(Q,): at most 1."""
        return self._count_relevant(ranking) / np.float64(self.cutoff or 1)

    def expected_value(self, lists: rankings.TiedLists, depth: IntArray) -> FloatArray:
        """(Q,): every member of a group counts as the group's mean."""
        return self._expected_count(lists, depth) / np.float64(self.cutoff or 1)

    def filled_values(self, returned: rankings.ReturnedDocuments) -> FloatArray:
        """(Q,): the expected number of relevant documents over the cutoff."""
        return np.asarray(self._filled_gains(returned).sum(axis=1) / (self.cutoff or 1))


@measure_classes.register
class Success(_RelevantInTop):
    """``Success``: 1 where any document within the cutoff is relevant (trec_eval's m_success)."""

    method: str = "Success"

    def compute_values(self, ranking: rankings.Ranking) -> FloatArray:
        """(Q,): 0 or 1."""
        return (self._count_relevant(ranking) > 0).astype(np.float64)

    def expected_value(self, lists: rankings.TiedLists, depth: IntArray) -> FloatArray:
        """(Q,): the probability that the first relevant document falls within the depth."""
        return lists.expect_at_first(lists.grade >= self.rel, depth, np.ones_like)

    def filled_values(self, returned: rankings.ReturnedDocuments) -> FloatArray:
        """(Q,): 1 − Π_r (1 − p_r), p_r the probability that rank r is relevant."""
        return np.asarray(1 - np.prod(1 - self._filled_gains(returned), axis=1))


@measure_classes.register
class Judged(Measure):
    """``Judged``: the share of the first ranks that is judged.

    Source: ir_measures; the denominator is min(cutoff, length of the list).
    """

    required_ranks = "judged"

    method: str = "Judged"

    def compute_values(self, ranking: rankings.Ranking) -> FloatArray:
        """(Q,): 0 for an empty list."""
        rows = ranking.judged.within_cutoff(self.cutoff)
        length = ranking.returned
        if self.cutoff is not None:
            length = np.minimum(length, self.cutoff)
        return rankings.divide_or_zero(np.bincount(rows.query, minlength=ranking.size), length)

    def expected_value(self, lists: rankings.TiedLists, depth: IntArray) -> FloatArray:
        """(Q,): every member of a group counts as the group's mean."""
        length = np.bincount(lists.query, minlength=len(lists.runs.queries))
        count = lists.by_query(lists.mean_by_rank(lists.judged, depth))
        return rankings.divide_or_zero(count, np.minimum(length, depth).astype(np.float64))
