"""What the words of a page mean: one text for pages, docs and ``fusion-bench glossary``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from fusion_bench.errors import UnknownNameError
from fusion_bench.measures.aliases import display_measure


@dataclass(frozen=True)
class Term:
    """A word and what it means.

    Attributes:
        name: The word as pages write it.
        meaning: One or two sentences.
        others: Other words for it, and for what it explains.
        measure: The family of measures that it explains, such as ``nDCG``; empty = none.
    """

    name: str
    meaning: str
    others: tuple[str, ...] = ()
    measure: str = ""


#: The words of pages.
WORDS: Final[tuple[Term, ...]] = (
    Term(
        "nDCG@10",
        "How well the first 10 documents are ordered, from 0 to 1: each document counts by its "
        "grade, less at a lower rank (divided by log2(rank + 1)). The sum is divided by the sum of "
        "the best possible order (normalized discounted cumulative gain).",
        ("discounted",),
        "nDCG",
    ),
    Term(
        "RR@10",
        "1 ÷ the rank of the first relevant document among the first 10; 0 if there is none "
        "(reciprocal rank). Pages print it as MRR@10, files and keys as RR@10.",
        ("MRR@10", "MRR"),
        "RR",
    ),
    Term(
        "AP",
        "The mean of the precision at each relevant document; 0 for one that is not returned "
        "(average precision). Pages print it as MAP, files and keys as AP.",
        ("MAP",),
        "AP",
    ),
    Term(
        "R@100",
        "The share of the relevant documents that are among the first 100 (recall).",
        ("recall",),
        "R",
    ),
    Term(
        "P@10",
        "The share of the first 10 places that hold a relevant document (precision).",
        ("precision",),
        "P",
    ),
    Term(
        "Success@10",
        "1 if a relevant document is among the first 10, else 0 (hit rate).",
        ("hit rate",),
        "Success",
    ),
    Term(
        "ERR@20",
        "The expected value of 1 ÷ the rank at which a reader stops who is satisfied by documents "
        "of higher grades with a higher probability. Expected reciprocal rank.",
        measure="ERR",
    ),
    Term(
        "RBP",
        "The rate of relevant documents for a reader who goes on from each place to the next with "
        "a fixed probability. Rank-biased precision.",
        measure="RBP",
    ),
    Term(
        "judged",
        "Somebody, or a model, gave the document a grade for the query. A document without a "
        "grade counts as not relevant, which lowers systems that return new documents.",
        ("unjudged", "grade", "relevant"),
    ),
    Term(
        "Judged@10",
        "The share of a system's first 10 documents that are judged. If it is low or differs "
        "between systems, judge more documents before you believe a difference.",
        measure="Judged",
    ),
    Term(
        "if judged",
        "The lowest and the highest mean that the system could have if its unjudged documents "
        "were judged.",
    ),
    Term(
        "check the data",
        "There is no answer: document ids do not meet, or a check finds that a list is not what it "
        "seems, such as distances read as scores. The cause and the remedy are printed with it.",
        ("unmatched", "suspect"),
    ),
    Term(
        "judge first",
        "Documents without a grade could reverse the answer, so there is no answer yet. Keys "
        "and JSON call it unjudged decide.",
        ("unjudged decide",),
    ),
    Term(
        "unjudged estimated",
        "The difference if every unjudged document were as relevant as the system's judged "
        "documents at its rank are on average. Keys and JSON call it filled.",
        ("filled",),
    ),
    Term("judged only", "The difference if unjudged documents are taken out of both lists."),
    Term(
        "system",
        "One way to rank: the lists that it reads, how it fuses them, and a blend if it has a "
        "reranker. An experiment compares systems.",
        ("systems",),
    ),
    Term(
        "baseline",
        "The system that every other one is compared with: usually the one that runs today.",
    ),
    Term(
        "candidate",
        "A system that is compared with the baseline. A candidate document is one that a reranker "
        "scores.",
        ("candidates",),
    ),
    Term("difference", "The system's mean minus the baseline's, over the same queries."),
    Term(
        "interval",
        "A range for the true difference on queries like these, computed so that in 95 of 100 "
        "tables all intervals contain their true values. If it contains 0, no difference is "
        "shown.",
        ("95 % interval", "confidence interval"),
    ),
    Term(
        "p",
        "How often a difference as large as this one would come about by chance in any row of the "
        "table, if no system differed from the baseline. At most .05 (alpha) counts as shown.",
        ("adjusted p", "significant"),
    ),
    Term(
        "unadjusted",
        "A p or an interval that holds alone: among many such rows some look real by chance, so "
        "no verdict uses it.",
    ),
    Term(
        "few",
        "Behind an interval: so few queries differ that it may miss the true difference more often "
        "than promised.",
    ),
    Term(
        "better, worse",
        "The difference is shown: its p is at most alpha, and its interval does not contain 0.",
        ("better", "worse", "verdict"),
    ),
    Term(
        "not shown",
        "The queries do not suffice to tell whether the systems differ. It does not mean that they "
        "are equal.",
        ("not significant",),
    ),
    Term(
        "equivalent",
        "The whole interval lies within the smallest difference that matters (min_gain).",
    ),
    Term(
        "best group",
        "The systems that are not shown to be worse than any other, all pairs compared. Choose "
        "within it by cost: a higher mean in it is no evidence.",
        ("first group", "★"),
    ),
    Term(
        "minimum detectable difference",
        "The true difference that the queries at hand show with a probability of 80 %.",
        ("min. detectable", "power"),
    ),
    Term(
        "unseen losses",
        "Up to this share of all queries may lose 1 although no query at hand shows it, with 95 % "
        "confidence. Keys and JSON call it unseen_loss.",
        ("unseen loss",),
    ),
    Term(
        "w/t/l",
        "Queries on which the system is better than the baseline, equal to it, and worse.",
        ("wins", "ties", "losses"),
    ),
    Term(
        "slice",
        "The queries with one value of a field, such as one type or one language. Reports compare "
        "the systems on each slice, and the gate can check one.",
        ("slices",),
    ),
    Term(
        "guard",
        "A limit of the gate on single queries: at most this share of them may lose more than so "
        "much. The gate fails if more do, whatever the means are.",
        ("guards",),
    ),
    Term(
        "golden",
        "A query with a document that must stay among its first results. The gate fails if the "
        "document is lower, whatever the means are.",
        ("golden query", "golden queries"),
    ),
    Term(
        "anchor",
        "Values of an earlier baseline that somebody accepted. The gate checks a candidate against "
        "them too, so that small losses cannot add up.",
        ("anchors",),
    ),
    Term(
        "held out",
        "Queries that no choice was made on. What was tuned is judged on them alone, because "
        "every choice looks better than it is on the queries that it was made on.",
        ("held-out", "tuning queries", "split"),
    ),
    Term(
        "cross-fitted",
        "The queries are divided into parts, and each part is evaluated with what the others "
        "choose. So every query is held out once.",
        ("cross-fitting", "folds", "out of fold"),
    ),
    Term(
        "look",
        "A test on held-out queries. Each look at the same queries makes a lucky result more "
        "likely, so the next one is tested more strictly.",
        ("looks",),
    ),
    Term(
        "ship",
        "The tuned system is shown to be better on held-out queries by the rule of the page.",
        ("keep",),
    ),
    Term("run", "A file with the ranked list of one retriever for each query.", ("list",)),
    Term("source", "One ranked list of a query as a system reads it: a run, or a stage."),
    Term(
        "fusion", "One order made of several ranked lists, such as by reciprocal rank fusion (rrf)."
    ),
    Term(
        "reranker",
        "A model that scores the first documents of a list again; a blend mixes its score with the "
        "fused one.",
        ("blend", "rerank"),
    ),
    Term(
        "score space",
        "The meaning of a reranker's scores: from 0 to 1, logits, log-probabilities, without "
        "bounds, or an order alone. A blend needs it to bring them to one scale.",
        ("score_space",),
    ),
    Term(
        "group",
        "Queries that depend on each other, such as rewrites of one question. They count as one "
        "observation; the variance of a difference is so many times that of independent queries "
        "(the design effect).",
        ("groups", "design effect"),
    ),
    Term(
        "repeat",
        "Another answer of the same system to the same query, if it answers differently each time.",
        ("trial of a list",),
    ),
    Term(
        "collapse",
        "Make one result of the chunks (parts) of a document, their parent, or keep the best "
        "chunks, so that no document counts twice.",
        ("chunk", "parent"),
    ),
    Term(
        "ties",
        "Documents with equal scores. Their order is a rule (trec_eval's by default), and a value "
        "that depends on it is marked.",
        ("tied",),
    ),
)

#: What each fusion method and each blend does.
_METHOD_MEANINGS: Final = {
    "rrf": "Each list gives a document w / (k + rank), and the sum decides. A greater k flattens "
    "the difference between neighboring ranks; 60 is usual.",
    "rrf_v2": "RRF in which the lists of role question, asked with the user's own words, count "
    "twice. A document that any list ranks first, second or third gets a bonus.",
    "weighted_score": "The weighted mean of the scores, as they are or scaled first (normalize). A "
    "list without the document is left out (missing: skip), counts 0 (zero), or counts its least "
    "score (min).",
    "weighted_sum": "The weighted sum of the scores. It is not divided by the weights, so a "
    "document of many lists gains.",
    "isr": "Each list gives a document w / rank², and the sum is multiplied by the number of lists "
    "that returned it. First ranks and agreement count most.",
    "log_isr": "Like isr, but the sum is multiplied by the logarithm of the number of lists. A "
    "document of one list scores 0.",
    "logn_isr": "Like log_isr, but a small number (sigma) is added before the logarithm. So "
    "documents of one list keep their order.",
    "rbc": "Each list gives a document (1 − φ)·φ^(rank − 1), as it counts for a reader who goes on "
    "with probability φ. A smaller φ makes the first ranks count more.",
    "borda": "Each list gives its first document as many points as there are candidates, and one "
    "less at each rank. It shares the rest of its points among the documents that it did not "
    "return.",
    "condorcet": "One document beats another if more lists rank it above. The score counts the "
    "documents that it beats, and half of those that it ties with.",
    "softmax_rrf": "RRF in which each list gives more to the documents whose scores stand out. "
    "temperature and rank_decay set how much more.",
    "comb_sum": "The sum of a document's scores. Scale the scores first (normalize) if the lists "
    "differ in scale.",
    "comb_anz": "The mean score over the lists that returned the document. A document of one list "
    "can beat a document of two.",
    "comb_mnz": "The sum of the scores, multiplied by the number of lists that returned the "
    "document. Agreement counts more than in comb_sum.",
    "comb_gmnz": "The sum of the scores, multiplied by the number of lists to the power of gamma. "
    "gamma 0 is comb_sum, gamma 1 is comb_mnz.",
    "comb_max": "The greatest score of the document in any list. The list with the largest scale "
    "decides, unless you scale the scores first.",
    "comb_min": "The least score of the document in the lists that returned it. A document of one "
    "list keeps its only score.",
    "comb_med": "The median score over the lists that returned the document. With two lists it is "
    "the mean.",
    "mixed": "The weighted sum of the scores, multiplied by the square root of the number of lists "
    "that returned the document. Agreement counts less than in comb_mnz.",
    "max_score": "The greatest weighted score of the document, after each list is scaled. One list "
    "alone can put a document first.",
    "tm2c2": "The weighted mean of scores that are scaled from the least score that a list could "
    "give. So the worst document of a list does not move the others.",
    "dbsf": "The weighted sum of scores that are scaled over three standard deviations around the "
    "mean of the list. Qdrant fuses this way.",
    "log_odds": "Scores become probabilities of relevance, and the weighted mean of their log-odds "
    "decides. exponent sets how much more lists sharpen it.",
    "prob_fuse": "Training queries show how often each segment of a list holds relevant documents. "
    "A document gets that share, divided by the number of its segment.",
    "seg_fuse": "Like prob_fuse, but segments grow down the list. The share is multiplied by the "
    "scaled score plus 1.",
    "pos_fuse": "Training queries show how often each rank of a list holds a relevant document. A "
    "document gets the sum of these shares over its lists.",
    "slide_fuse": "Like pos_fuse, but each rank has the mean share of its neighbors. So the shares "
    "are steady with few training queries.",
    "map_fuse": "Each list gives its mean average precision on the training queries, divided by "
    "the rank. Better lists count more.",
    "bayes_fuse": "Training queries show the odds of relevance near each rank of a list, and the "
    "logarithms of the odds are added. A list without the document counts against it.",
    "logistic_regression": "A logistic model of ranks, scores and agreement, fitted on training "
    "queries. Its log-odds of relevance decide.",
    "coordinate_ascent": "The weighted sum of ranks, scores and agreement. Training starts at RRF "
    "and sets one weight after another to the value with the best measure.",
    "lambdamart": "Boosted trees over ranks, scores and agreement, fitted for nDCG on training "
    "queries. It needs the package lightgbm.",
    "none": "No reranker takes part. The fused list stays as it is.",
    "replace": "The reranker's order replaces the order of the first documents (depth). The other "
    "documents stay below, in fused order.",
    "linear": "The final score is β × the reranker's score + (1 − β) × a retrieval term. That term "
    "(retrieval) is the fused score, scaled or not, or 1/rank.",
    "position_aware": "A retrieval term weighs .75 at fused ranks 1–3, .60 at ranks 4–10 and .40 "
    "below, and the reranker's score weighs the rest. The term (retrieval) is the fused score, "
    "scaled or not, or 1/rank.",
}
#: Other words for a method, such as its name in ``try``.
_METHOD_NAMES: Final = {
    "rrf": ("RRF", "RRF v1"),
    "rrf_v2": ("RRF v2",),
    "weighted_score": ("raw scores", "min-max", "z-score", "convex"),
    "position_aware": ("bands",),
}
METHODS: Final = tuple(
    Term(name, meaning, _METHOD_NAMES.get(name, ())) for name, meaning in _METHOD_MEANINGS.items()
)
#: Everything that ``fusion-bench glossary`` prints.
TERMS: Final = (*WORDS, *METHODS)


def list_used(text: str) -> list[Term]:
    """Return the words of pages, and the methods that a text of configurations names."""
    used = {*re.findall(r"[a-z]\w*", text)}
    return [*WORDS, *(method for method in METHODS if method.name in used)]


def find_terms(name: str) -> list[Term]:
    """The terms of a name, without regard to case; a measure at any cutoff is one of its family.

    Raises:
        UnknownNameError: There is none.
    """
    wanted = " ".join(name.lower().split())
    family = re.split(r"[@(]", wanted)[0].strip()
    exact = [t for t in TERMS if wanted in {t.name.lower(), *(o.lower() for o in t.others)}]
    terms = exact or [
        term
        for term in TERMS
        if term.measure and family in {term.measure.lower(), display_measure(term.measure).lower()}
    ]
    if not terms:
        raise UnknownNameError("term", name, [term.name for term in TERMS])
    return terms
