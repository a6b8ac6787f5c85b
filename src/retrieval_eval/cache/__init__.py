"""The embedding cache: one SQLite file and a manifest in a folder that prep writes and run reads."""
