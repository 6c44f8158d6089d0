"""The findings of a section by the place that a browser's page gives them.

Warnings come first, each as one line: its first sentence, which opens. Those of lint are folded
together with its notes. Everything else is a statement.
"""

from __future__ import annotations

import re

from fusion_bench.report.page import Finding, Section

#: Keys of what lint finds begin so.
LINT = "lint "
#: Ends a sentence: the next one begins with a capital letter.
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def warnings_of(section: Section) -> list[Finding]:
    """What speaks against the numbers, but lint's warnings."""
    return [finding for finding in section.findings if _is_alert(finding)]


def lint_of(section: Section) -> list[Finding]:
    """What lint says: warnings, then notes."""
    lines = [finding for finding in section.findings if _is_lint(finding)]
    return sorted(lines, key=lambda finding: finding.tone != "warning")


def statements_of(section: Section) -> list[Finding]:
    """All other findings."""
    return [each for each in section.findings if not (_is_alert(each) or _is_lint(each))]


def first_sentence(text: str) -> tuple[str, str]:
    """A text as its first sentence and the rest; the rest may be empty."""
    first, *rest = SENTENCE_END.split(text, maxsplit=1)
    return first, "".join(rest)


def _is_lint(finding: Finding) -> bool:
    return finding.key.startswith(LINT)


def _is_alert(finding: Finding) -> bool:
    return finding.tone == "warning" and not _is_lint(finding)
