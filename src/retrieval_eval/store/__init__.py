"""The reference store: vipune's retrieval path, rule by rule, over a throwaway SQLite database."""
