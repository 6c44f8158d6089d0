"""What stands behind the means: ranks, terms, texts, sources. Facts for people who look closer.

A report holds values; this package says how they came about, query by query and source by source.
Each module computes one fact from aligned runs. ``records`` puts them together.
"""
