"""Simulations of what the statistics promise, one module a rule.

Such a module has a ``TITLE``, a ``DESCRIPTION`` (what is simulated, how the data are made, what is
promised), may have ``DRAWS`` (2,000 otherwise), and a function ``run(*, draws: int)`` that returns
promises and estimates.
"""
