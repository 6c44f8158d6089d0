"""Findings of many small cases as one text: what is said in each beyond the usual."""

from collections.abc import Iterable, Mapping

from fusion_bench.report.page import Finding


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
