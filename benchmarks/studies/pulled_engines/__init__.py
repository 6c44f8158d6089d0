"""Real engines over nfcorpus: do our dialects replay their own fused answers?"""
