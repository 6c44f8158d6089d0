"""Unjudged documents: how many there are, and what they could change in a comparison.

Three views of one comparison: the share of unjudged documents in the top 10, the difference over
judged documents only, and the difference with unjudged documents filled. Where the last two
contradict an answer, unjudged documents decide it.
"""
