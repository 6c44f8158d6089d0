"""Systems, experiments and the settings of ``tune`` and ``gate``."""
