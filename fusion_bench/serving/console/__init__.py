"""The live mixing console: sliders for every number of a system, measures on the tuning queries."""
