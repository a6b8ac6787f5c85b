"""LongMemEval files: streaming reader, gold rule, session text."""

from retrieval_eval.dataset.reader import DatasetReader

__all__ = ["DatasetReader"]
