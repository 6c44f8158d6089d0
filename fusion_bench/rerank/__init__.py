"""Candidates in, rerank scores out: asked once, kept, accounted for, honest about failures.

The bench never imports this package; it reads the lists that are written from here.
"""
