"""One ask at its share where losses are rare: exact probabilities of a false ship."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.studies.campaigns.nulls import SKEWS
from benchmarks.studies.campaigns.replay import LEVEL
from fusion_bench.campaign.decision import phase_share
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.stats.intervals import BETS, log_capital

QUERIES: Final = (400, 833, 3_000)
ASKS: Final = 1_000


@dataclass(frozen=True)
class TailRow:
    """How often one ask ships, in shares of its level.

    Attributes:
        skew: Of the differences.
        queries: Held out.
        student: Probability that Student's t exceeds its quantile ÷ the share.
        betting: Probability that the e-value reaches 1/share ÷ the share.
        mean_e: Expectation of the e-value.
    """

    skew: str
    queries: int
    student: float
    betting: float
    mean_e: float


def measure_tails(skew: str, queries: int) -> TailRow:
    """Sum over all numbers of wins and losses."""
    from scipy.special import stdtr

    win, wins, loss, losses = SKEWS[skew]
    lost: IntArray = np.arange(queries + 1)[:, None]
    won: IntArray = np.arange(queries + 1)
    probability = _multinomial(queries, lost, won, losses, wins)
    mean = (win * won - loss * lost) / queries
    variance = (win**2 * won + loss**2 * lost) / queries - mean**2
    errors = np.sqrt(np.maximum(variance, 1e-300) / (queries - 1))
    p = np.where(mean > 0, stdtr(queries - 1, -mean / errors), 1.0)
    with np.errstate(divide="ignore"):
        logs = [np.log1p(b * win) * won + np.log(max(1 - b * loss, 1e-9)) * lost for b in BETS]
    log_e = log_capital(np.stack(logs, axis=-1))
    share = phase_share(1, ships=1, asks=ASKS, level=LEVEL)
    return TailRow(
        skew=skew,
        queries=queries,
        student=float(probability[p <= share].sum() / share),
        betting=float(probability[log_e >= -np.log(share)].sum() / share),
        mean_e=float((probability * np.exp(np.where(probability > 0, log_e, 0))).sum()),
    )


def _multinomial(
    queries: int, lost: IntArray, won: IntArray, losses: float, wins: float
) -> FloatArray:
    """(Q+1, Q+1): probability of so many losses and wins."""
    from scipy.special import gammaln

    rest = queries - lost - won
    kept = np.maximum(rest, 0)
    log = gammaln(queries + 1) - gammaln(lost + 1) - gammaln(won + 1) - gammaln(kept + 1)
    log = log + lost * np.log(losses) + won * np.log(wins) + kept * np.log(1 - losses - wins)
    return np.where(rest >= 0, np.exp(log), 0.0)
