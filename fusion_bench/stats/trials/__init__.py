"""Systems that were asked several times: what their trials add to a variance, and what helps."""
