"""Completions of the judgments, and the least and greatest values that they allow.

A completion gives every unjudged document among the first k of one or two systems some grade of
the scale. Ideals are computed again. Documents in neither list stay not relevant.
"""
