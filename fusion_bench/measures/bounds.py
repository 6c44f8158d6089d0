"""Which measures have values in [0, 1], so that no interval may go beyond."""

from __future__ import annotations

import re
from typing import Final

#: Names before brackets and cutoff, ours and those of ir_measures.
BOUNDED: Final = frozenset(
    (
        *("nDCG", "RR", "R", "AP", "P", "Success", "Judged", "Rprec", "Bpref", "infAP", "IPrec"),
        *("SetP", "SetR", "SetF", "SetAP", "SetRelP", "RBP", "ERR", "nERR", "Accuracy", "Compat"),
        *("alpha_nDCG", "ERR_IA", "nERR_IA", "nNRBP", "P_IA", "AP_IA", "STREC"),
    )
)


def is_bounded(name: str) -> bool:
    """Whether all values of a measure lie in [0, 1]; False where that is not known.

    Args:
        name: As ir_measures names it, such as ``nDCG(dcg='exp-log2')@10``.
    """
    return re.split(r"[(@]", name, maxsplit=1)[0] in BOUNDED
