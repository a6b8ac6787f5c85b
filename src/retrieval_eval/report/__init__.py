"""The report: one JSON document in, Markdown out. Formats figures, never computes a score and never posts anything."""
