"""The skill for coding agents: its commands, and tasks that an agent does with them."""
