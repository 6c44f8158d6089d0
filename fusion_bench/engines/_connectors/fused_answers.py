"""Connectors of engines whose own fusion is in the terms of a dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, model_validator

from fusion_bench.config.limits import Rank
from fusion_bench.connector import Connector
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import dialects
from fusion_bench.experiment.system import System
from fusion_bench.fuse import Fusion

#: The name of the system that an engine's own fusion is.
FUSED = "fused"
#: Most documents of a list where an engine states no limit.
MOST_DOCUMENTS = 10_000


class FusedByDialect(Connector):
    """A connector whose ``fused`` is a fusion of its engine's dialect, over all legs.

    Attributes:
        limit_name: What limits the depth of a list, for messages.
        limit_advice: What to do about it.
        window_advice: How the engine fuses fewer documents of a leg, for messages.
        has_window_by_leg: Whether the engine fuses a number of documents that differs by leg.
        fused: A fusion as an experiment of this dialect has it; None = no fused answer is pulled.
        window: How many documents of each leg the engine fuses; None = the depth of the pull.
        most_documents: The longest list that the engine returns.
    """

    limit_name: ClassVar[str] = "the engine"
    limit_advice: ClassVar[str] = "ask for fewer, or raise it there and set most_documents"
    has_window_by_leg: ClassVar[bool] = False
    window_advice: ClassVar[str] = "set a smaller window"

    fused: dict[str, Any] | None = None
    window: Rank | None = Field(default=None)
    most_documents: Rank = MOST_DOCUMENTS

    @model_validator(mode="after")
    def _check_fused(self) -> FusedByDialect:
        if self.fused is not None:
            try:
                system = self.fused_system(1)
            except ConfigError as error:
                text = str(error)
                prefix = "" if text.startswith(f"{FUSED}.") else f"{FUSED}."
                raise ValueError(f"{prefix}{text}") from None
            translation = dialects.find_plugin(self.dialect).translate(system, self._leg_roles())
            if translation.system is None:
                raise ValueError(f"{FUSED}.{translation.reasons[0]} (runs are legs)")
        return self

    def fused_system(self, depth: int) -> System:
        """The engine's own fusion of the legs as a system.

        Args:
            depth: How many fused documents are wanted.

        Raises:
            ConfigError: The fusion is none of the dialect, or does not fit the legs.
        """
        windows = {name: self.window_of(name, depth) for name in self.legs}
        is_common = len({*windows.values()}) == 1
        system = System(
            FUSED,
            [*windows],
            dialect=self.dialect,
            fusion=self.fused_options(),
            depth=next(iter(windows.values())) if is_common else windows,
            top_k=depth,
        )
        return system.model_copy(update={"fusion": self._name_weights(system.fusion)})

    def _name_weights(self, fusion: Fusion) -> Fusion:
        """The fusion with a weight for each leg, where it has weights by leg or role."""
        roles = self._leg_roles()
        weights = fusion.source_weights([*roles], [*roles.values()]).tolist()
        if not getattr(fusion, "weights", None):
            return fusion
        by_leg = dict(zip(roles, weights, strict=True))
        for leg, weight in by_leg.items():
            if weight == 0:
                raise ConfigError(
                    f"weights: 0 for leg {leg!r}: the engine would return its documents all the "
                    "same, and a replay would not: remove the leg, or give it a weight"
                )
        return fusion.model_copy(update={"weights": by_leg})

    def fused_options(self) -> dict[str, Any]:
        """The fusion as the system has it: by default as it is configured."""
        return dict(self.fused or {})

    def describe_replay(self, depth: int) -> Mapping[str, Any] | None:
        """The fusion, with the windows and the limit of the request."""
        if self.fused is None:
            return None
        system = self.fused_system(depth)
        translation = dialects.find_plugin(self.dialect).translate(system, self._leg_roles())
        asked = translation.system or system
        fusion = system.fusion.model_dump(mode="json")
        return {"fusion": fusion, "depth": asked.depth, "top_k": asked.top_k}

    def check_depth(self, leg: str, depth: int) -> None:
        """Refuse what the engine does not return, and legs that are shorter than it fuses them."""
        if depth > self.most_documents:
            place = f"legs.{leg}" if leg else FUSED
            raise ConfigError(
                f"{place}: depth {depth:,} is more than the {self.most_documents:,} documents that "
                f"{self.limit_name} allows: {self.limit_advice}"
            )
        if leg or self.fused is None:
            return
        for name, settings in self.legs.items():
            self._check_length(name, settings.depth or depth, self.window_of(name, depth))

    def _check_length(self, leg: str, length: int, window: int) -> None:
        if length < window:
            raise ConfigError(
                f"legs.{leg}: the engine fuses {window:,} documents of each leg, and {length:,} of "
                f"this one are pulled: pull {window:,}, or {self.window_advice}"
            )
        if length > window and self.window is None:
            raise ConfigError(
                f"legs.{leg}: the engine fuses {window:,} documents of each leg, and {length:,} of "
                f"this one are pulled: set window: {window} too, or remove depth"
            )

    def window_of(self, leg: str, depth: int) -> int:
        """How many documents of a leg the engine fuses, of so many fused ones."""
        if not self.has_window_by_leg:
            return self.window or depth
        length = self.legs[leg].depth or depth
        return min(length, self.window or length)

    def _leg_roles(self) -> dict[str, frozenset[str]]:
        return {name: frozenset(leg.roles) for name, leg in self.legs.items()}
