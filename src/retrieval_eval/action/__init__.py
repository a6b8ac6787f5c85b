"""The container action: `python -I -m retrieval_eval.action` under GitHub's runner."""
