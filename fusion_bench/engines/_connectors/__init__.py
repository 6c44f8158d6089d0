"""What connectors share: sessions, answers, hits, engines that are a library."""
