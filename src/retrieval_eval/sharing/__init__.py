"""Caches that change hands: shards united into one, a cache packed into an archive, an archive taken as a cache."""
