"""What pages say of ``RAG_FUSION_V2_ENABLED`` where it was off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fusion_bench.report.page import Finding

_V1 = "rrf_v2 ran as rrf without weights and bonus, and position_aware as replace."
V2_DISABLED = f"RAG_FUSION_V2_ENABLED is off: {_V1}"


def v2_findings(sides: Mapping[str, bool]) -> Iterator[Finding]:
    """A warning where the switch was off; nothing where it was on everywhere.

    Args:
        sides: What is compared, such as ``baseline`` and ``candidate`` → whether version 2 ran.
    """
    off = [name for name, enabled in sides.items() if not enabled]
    on = [name for name in sides if name not in off]
    if off and on:
        text = (
            f"RAG_FUSION_V2_ENABLED was on for {' and '.join(on)} and off for "
            f"{' and '.join(off)}: there {_V1} Their difference contains that of the switch."
        )
        yield Finding(text, "warning", "v2 differs")
    elif off:
        yield Finding(V2_DISABLED, "warning", "v2 disabled")
