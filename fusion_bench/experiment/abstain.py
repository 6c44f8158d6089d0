"""When a system says that it has no answer: a threshold on one of its signals."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from fusion_bench.config.models import StrictModel
from fusion_bench.errors import ConfigError

FUSED_TOP: Final = "fused top"
FUSED_MARGIN: Final = "fused margin"
RERANK_TOP: Final = "rerank top"
AGREEMENT: Final = "agreement"
#: Prefix of the greatest raw score of a list: ``top:bm25``.
LIST_TOP: Final = "top:"

#: In place of a signal: whichever keeps the most answerable queries.
ANY: Final = "any"
#: A share above 0 and below 1.
OpenShare = Annotated[float, Field(gt=0, lt=1)]


class Abstain(StrictModel):
    """A query is answered if its signal is above a threshold; NaN and empty lists never are.

    Attributes:
        signal: The signal; ``docs/thresholds.md`` lists them. With ``false_answers`` it may be
            ``any``: then one is chosen.
        among: With ``any`` the signals that one is chosen of; empty = all of the system's.
        above: The threshold.
        false_answers: In place of ``above``: the share of unanswerable queries that may be
            answered, which ``fusion-bench threshold --save`` turns into ``above``.
        promised_false_answers: Beside ``above``: the share that was promised when it was found.
        calibrated_on: Beside ``above``: SHA-256 of the ids of the queries that it is from.
    """

    signal: str
    among: tuple[str, ...] = ()
    above: float | None = None
    false_answers: OpenShare | None = None
    promised_false_answers: OpenShare | None = None
    calibrated_on: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None

    @model_validator(mode="after")
    def _check_threshold(self) -> Abstain:
        if (self.above is None) == (self.false_answers is None):
            given = "neither is given" if self.above is None else "both are given"
            raise ValueError(f"one of 'above' and 'false_answers' is needed: {given}")
        if self.above is not None and self.signal == ANY:
            raise ValueError("'above' is a threshold on one signal: name it")
        if self.among and self.signal != ANY:
            raise ValueError("'among' belongs to 'signal: any': remove it")
        for name in ("promised_false_answers", "calibrated_on"):
            if self.above is None and getattr(self, name) is not None:
                raise ValueError(f"'{name}' belongs to 'above': remove it")
        return self

    @model_serializer(mode="wrap")
    def _omit_unset(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = serialize(self)
        return {key: value for key, value in data.items() if value not in (None, (), [])}

    @property
    def names(self) -> tuple[str, ...]:
        """The signals that it names; empty = any."""
        return self.among if self.signal == ANY else (self.signal,)

    @property
    def limit(self) -> float | None:
        """The share of false answers that a threshold is found for; None = not stated."""
        return self.false_answers or self.promised_false_answers

    def find_threshold(self, system: str) -> float:
        """The threshold.

        Args:
            system: Name of the system, for the message.

        Raises:
            ConfigError: It is not known yet.
        """
        if self.above is None:
            raise ConfigError(
                f"system {system!r}: abstain has no threshold yet: run 'fusion-bench threshold "
                "EXPERIMENT --save FILE', and use FILE, which has 'above' in place of "
                "'false_answers'"
            )
        return self.above
