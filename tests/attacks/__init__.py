"""Attacks as data: what is given, what is run, and how it must end.

- An :class:`~tests.attacks.attack.Attack` names the damage to a prepared project, the command, the
  exit code, words of the error, and words that must appear nowhere. A module ``test_<part>.py``
  holds the attacks of a part in a list ``ATTACKS``, and runs them with :func:`~.runner.run_attack`:
  in this process, or in one of its own where a stream or a limit of the process is involved.
- Every attack is held to the same rules: no traceback, one line on standard error where the
  command refuses, the right exit code, nothing written but what the attack allows, no draft left.
- A loop (``loops/*.py``, each with one ``LOOP``) repeats an attack with a random place: a moment of
  a kill, a mutated file, a write that fails. Its function does one round from a seed and returns a
  :class:`~.torture.Tally` of what was survived. The tests do a few rounds of each; ``make torture``
  does as many as fit into ``MINUTES``, and prints ``survived: K kills, N inputs, F faults``.
"""
