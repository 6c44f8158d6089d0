"""How often the gate's rule passes, fails and alarms, computed from a check's differences."""
