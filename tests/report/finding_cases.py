"""Findings and tables of many small cases as one text."""

from collections.abc import Iterable, Mapping

from fusion_bench.report.page import Finding, Table


def describe_cases(cases: Mapping[str, Iterable[Finding]], usual: Iterable[Finding] = ()) -> str:
    """Key, tone and text of the findings of each case that are not the usual ones.

    Usual findings whose key a case lacks are named.
    """
    usual = list(usual)
    lines: list[str] = []
    for name, each in cases.items():
        findings = list(each)
        lacking = {finding.key for finding in usual} - {finding.key for finding in findings}
        lines.append(f"\n# {name}")
        for finding in usual if name == "usual" else findings:
            if name == "usual" or finding not in usual:
                lines += [f"{finding.key} ({finding.tone}): {finding.text}"]
                lines += [f"    {detail}" for detail in finding.details]
        lines += [f"no {key}" for key in sorted(lacking)]
    return "\n".join(lines).lstrip() + "\n"


def describe_tables(tables: Mapping[str, Table | None]) -> str:
    """Headers (optional ones with a ?), the tone and the cells of each row, and the notes."""
    lines: list[str] = []
    for name, table in tables.items():
        lines.append(f"\n# {name}")
        if table is None:
            lines.append("no table")
            continue
        lines.append(" | ".join(f"{each.header}{'?' * each.is_optional}" for each in table.columns))
        lines += [f"{row.tone}: {' | '.join(row.cells)}".rstrip() for row in table.rows]
        lines += table.notes
    return "\n".join(lines).lstrip() + "\n"
