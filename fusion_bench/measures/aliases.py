"""Names of measures: aliases of trec_eval, ranx, papers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator

from fusion_bench.config.plugins import read_entry_points
from fusion_bench.errors import find_similar
from fusion_bench.measures._base import measure_classes

#: Name in lower case → what it stands for: a name, and options where it needs some.
ALIASES: Final = {
    "average_precision": "AP",
    "bpref": "Bpref",
    "hit": "Success",
    "hit_rate": "Success",
    "hitrate": "Success",
    "infap": "infAP",
    "iprec_at_recall": "IPrec",
    "map": "AP",
    "map_cut": "AP",
    "mean_average_precision": "AP",
    "mean_reciprocal_rank": "RR",
    "mrr": "RR",
    "ndcg_burges": "nDCG(dcg='exp-log2')",
    "ndcg_cut": "nDCG",
    "num_rel": "NumRel",
    "num_rel_ret": "NumRelRet",
    "num_ret": "NumRet",
    "prec": "P",
    "precision": "P",
    "r_precision": "Rprec",
    "recall": "R",
    "recip_rank": "RR",
    "reciprocal_rank": "RR",
    "rprec": "Rprec",
    "set_f": "SetF",
    "set_p": "SetP",
    "set_recall": "SetR",
}

#: ``mrr@10``, ``mrr(rel=2)@10``, and trec_eval's ``ndcg_cut_10`` and ``ndcg_cut.10``.
FORM: Final = re.compile(
    r"\s*(?P<head>[A-Za-z][A-Za-z_-]*?)(?:[_.](?P<suffix>\d+(?:\.\d+)?))?\s*"
    r"(?P<options>\(.*\))?\s*(?:@\s*(?P<cutoff>\S+))?\s*",
    re.DOTALL,
)

#: A name with a typing error: also ``ndcg10``.
MISSPELLED: Final = re.compile(
    r"\s*(?P<head>[A-Za-z][A-Za-z_-]*?)\s*(?P<options>\(.*\))?[\s_.@]*(?P<cutoff>\d+)?\s*",
    re.DOTALL,
)


def resolve_alias(text: str) -> str:
    """The canonical spelling of a measure's name; any other text is returned as it is.

    Args:
        text: Such as ``mrr@10``, ``recip_rank`` or ``ndcg_cut_10``.

    Returns:
        Such as ``RR@10``, ``RR`` or ``nDCG@10``.
    """
    match = FORM.fullmatch(text)
    if match is None or (match["suffix"] and match["cutoff"]):
        return text
    name = _canonical_name(match["head"])
    if name is None and match["suffix"] and match["head"] in measure_classes.load_built_in():
        name = match["head"]  # P_5
    if name is None:
        return text
    cutoff = match["suffix"] or match["cutoff"]
    return _join_options(name, match["options"] or "") + (f"@{cutoff}" if cutoff else "")


#: A measure's name in configuration, canonical once it is read.
MeasureName: TypeAlias = Annotated[str, AfterValidator(resolve_alias)]


def list_renamed(texts: Iterable[str]) -> tuple[str, ...]:
    """One line for each name that is not canonical: ``mrr@10 → RR@10``."""
    renamed = {text: resolve_alias(text) for text in texts}
    return tuple(f"{text} → {name}" for text, name in renamed.items() if name != text)


def display_measure(name: str) -> str:
    """A measure's name for people: ``MRR@10`` for ``RR@10``, ``MAP`` for ``AP``; keys stay.

    >>> display_measure("RR(rel=2)@10"), display_measure("RPrec")
    ('MRR(rel=2)@10', 'RPrec')
    """
    return re.sub(r"^(?=(AP|RR)\b)", "M", name)


def suggest_measures(text: str) -> list[str]:
    """Canonical names of measures that a misspelled one may mean, with its options and cutoff.

    >>> suggest_measures("ndgc@10")
    ['nDCG@10']
    """
    match = MISSPELLED.fullmatch(text)
    if match is None:
        return []
    heads = find_similar(
        match["head"].replace("-", "_"), [*measure_classes.load_built_in(), *ALIASES]
    )
    cutoff = f"@{match['cutoff']}" if match["cutoff"] else ""
    names = (_canonical_name(head) or head for head in heads)
    return list(dict.fromkeys(_join_options(n, match["options"] or "") + cutoff for n in names))


def _canonical_name(head: str) -> str | None:
    """What an alias stands for; None = it is no alias."""
    built_in = measure_classes.load_built_in()
    if head in built_in:
        return None
    by_lower_case = ALIASES | {name.lower(): name for name in built_in}
    name = by_lower_case.get(head.lower().replace("-", "_"))
    is_taken = name is not None and head in read_entry_points(measure_classes.group)
    return None if is_taken else name


def _join_options(name: str, options: str) -> str:
    """A name with its own options and those in brackets."""
    if not name.endswith(")"):
        return name + options
    return f"{name[:-1]},{options[1:]}" if options.strip("() ") else name
