"""LongMemEval files: streaming reader, gold rule, session text."""

from retrieval_eval.dataset.notes import DatasetNotes
from retrieval_eval.dataset.reader import DatasetReader
from retrieval_eval.dataset.text import render

__all__ = ["DatasetNotes", "DatasetReader", "render"]
