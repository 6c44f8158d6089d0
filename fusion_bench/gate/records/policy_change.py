"""What differs between the policy that a baseline was accepted under and today's."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from fusion_bench.config.files.json_records import StoredRecord

#: What a change of the policy does; ``other`` is neither looser nor stricter in every case.
PolicyEffect: TypeAlias = Literal["looser", "stricter", "other"]


class PolicyChange(StoredRecord):
    """One difference of two policies, or of what they guard.

    Attributes:
        path: The key below ``gate``; or ``experiment``, ``system``, ``seed``.
        before: In the baseline; None = not there.
        after: Today; None = not there.
        effect: Whether the gate is looser or stricter by it.
    """

    path: str
    before: Any
    after: Any
    effect: PolicyEffect

    @property
    def needs_update(self) -> bool:
        """Whether only an update of the baseline accepts it; a stricter policy needs none."""
        return self.effect != "stricter"

    @property
    def description(self) -> str:
        """``checks.RR@10.max_drop 0.01 → 0.5``."""
        return f"{self.path} {format_side(self.before)} → {format_side(self.after)}"


def format_side(value: object) -> str:
    """One side of a change as a reader of YAML knows it."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case list() | tuple():
            return f"[{', '.join(map(format_side, value))}]"
        case dict():
            pairs = ", ".join(f"{key}: {format_side(item)}" for key, item in value.items())
            return f"{{{pairs}}}"
    return str(value)
