"""Ways to make a gate pass though its candidate is worse, as data; none of them does.

Every trick starts from a project whose baseline was written from list ``a``, and whose experiment
now gates the worse list ``b`` under the same name: exit code 1. ``docs/studies/gate-tricks.md`` is
the table of all of them; ``python -m tests.attacks.gate.page`` writes it.
"""
