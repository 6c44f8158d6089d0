"""Judging: which documents to judge, by whom, and what became of it.

``pool/`` collects the unjudged documents and puts them in order, ``next/`` finds those that can
still change a comparison, ``terminal/`` asks a person, ``llm/`` a language model,
``files/`` keeps the grades.
"""
