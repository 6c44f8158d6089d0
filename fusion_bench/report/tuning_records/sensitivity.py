"""How much the parameters of a tuning run matter: folds, plateau and importances."""

from __future__ import annotations

from fusion_bench.evaluation.report_records.record import ReportRecord
from fusion_bench.report.tuning_records.trials import Value


class Fold(ReportRecord):
    """What the procedure chose without one fold, and what that was worth on it.

    Attributes:
        params: The chosen numbers.
        difference: Tuned − default on the queries it was chosen on.
        unseen: Tuned − default on the fold.
        queries: Size of the fold.
    """

    params: dict[str, Value]
    difference: float
    unseen: float
    queries: int


class Plateau(ReportRecord):
    """How much the numbers matter.

    Attributes:
        share: Of a uniform sample, within one standard error of the best (paired differences).
        sample: Its size.
    """

    share: float
    sample: int


class Importance(ReportRecord):
    """How much of the difference between good trials and all is due to one parameter.

    Attributes:
        path: The parameter.
        share: Of all parameters' importance; they add up to 1.
    """

    path: str
    share: float
