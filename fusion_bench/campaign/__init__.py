"""Campaigns: a held-out set that an automated search may ask a thousand times."""
