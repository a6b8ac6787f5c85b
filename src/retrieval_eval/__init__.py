"""retrieval-eval: how well a memory layer retrieves, measured on LongMemEval."""

__version__ = "0.1.0"
