"""What the words of a page mean: one text for pages, docs and ``fusion-bench glossary``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fusion_bench.errors import UnknownNameError


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


TERMS: tuple[Term, ...] = (
    Term(
        "nDCG@10",
        "How well the first 10 documents are ordered, from 0 to 1: each document counts by its "
        "grade, less the further down it stands (divided by log2(rank + 1)), and the sum is "
        "divided by that of the best possible order. Normalized discounted cumulative gain.",
        ("discounted",),
        "nDCG",
    ),
    Term(
        "RR@10",
        "1 ÷ the rank of the first relevant document among the first 10; 0 where there is none. "
        "Its mean over queries is called MRR. Reciprocal rank.",
        ("MRR",),
        "RR",
    ),
    Term(
        "AP",
        "The mean of the precision at each relevant document; 0 for one that is not returned. Its "
        "mean over queries is called MAP. Average precision.",
        ("MAP",),
        "AP",
    ),
    Term(
        "R@100",
        "The share of the relevant documents that stand among the first 100. Recall.",
        ("recall",),
        "R",
    ),
    Term(
        "P@10",
        "The share of the first 10 places that hold a relevant document. Precision.",
        ("precision",),
        "P",
    ),
    Term(
        "Success@10",
        "1 where a relevant document stands among the first 10, else 0. Hit rate.",
        ("hit rate",),
        "Success",
    ),
    Term(
        "ERR@20",
        "The expected value of 1 ÷ the rank at which a reader stops who is satisfied by documents "
        "of higher grades with a higher probability. Expected reciprocal rank.",
        (),
        "ERR",
    ),
    Term(
        "RBP",
        "The rate of relevant documents for a reader who goes on from each place to the next with "
        "a fixed probability. Rank-biased precision.",
        (),
        "RBP",
    ),
    Term(
        "judged",
        "Somebody, or a model, gave the document a grade for the query. A document without a "
        "grade counts as not relevant, which lowers systems that return new documents.",
        ("unjudged", "grade", "relevant"),
    ),
    Term(
        "Judged@10",
        "The share of a system's first 10 documents that are judged. Where it is low or differs "
        "between systems, judge more documents before you believe a difference.",
        (),
        "Judged",
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
        "Documents without a grade could turn the answer round, so that there is none yet. Keys "
        "and JSON call it unjudged decide.",
        ("unjudged decide",),
    ),
    Term(
        "unjudged estimated",
        "The difference if every unjudged document were as relevant as the system's judged "
        "documents at its rank are on average. Keys and JSON call it filled.",
        ("filled",),
    ),
    Term("judged only", "The difference where unjudged documents are taken out of both lists."),
    Term(
        "baseline",
        "The system that every other one is compared with: usually the one that runs today.",
    ),
    Term("difference", "The system's mean minus the baseline's, over the same queries."),
    Term(
        "interval",
        "A range for the true difference on queries like these, computed so that in 95 of 100 "
        "tables all intervals contain their true values. Where it contains 0, no difference is "
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
        "that no verdict rests on one.",
    ),
    Term(
        "few",
        "Behind an interval: so few queries differ that it may miss the true difference more often "
        "than it says.",
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
        "fusion",
        "One order made of several ranked lists, such as by reciprocal rank fusion (RRF).",
        ("RRF",),
    ),
    Term(
        "reranker",
        "A model that scores the first documents of a list again; a blend mixes its score with the "
        "fused one.",
        ("blend", "rerank"),
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
        "Another answer of the same system to the same query, where it answers differently each "
        "time.",
        ("trial of a list",),
    ),
    Term(
        "ties",
        "Documents with equal scores. Their order is a rule (trec_eval's by default), and a value "
        "that depends on it is marked.",
        ("tied",),
    ),
)


def find_terms(name: str) -> list[Term]:
    """The terms of a name, without regard to case; a measure at any cutoff is one of its family.

    Raises:
        UnknownNameError: There is none.
    """
    wanted = " ".join(name.lower().split())
    family = re.split(r"[@(]", wanted)[0].strip()
    exact = [t for t in TERMS if wanted in {t.name.lower(), *(o.lower() for o in t.others)}]
    terms = exact or [term for term in TERMS if term.measure.lower() == family != ""]
    if not terms:
        raise UnknownNameError("term", name, [term.name for term in TERMS])
    return terms
