"""Reading a ``report.json``: of this version's format, and with numbers that agree."""
