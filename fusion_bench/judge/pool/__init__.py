"""Pools: the unjudged documents that systems return, and the orders in which to judge them."""
