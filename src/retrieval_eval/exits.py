"""What both ways in end with: the exit codes, and where a bug of ours is reported."""

from __future__ import annotations

EXIT_OK, EXIT_BUG, EXIT_INPUT, EXIT_INTERRUPTED = 0, 1, 2, 130
ISSUES_URL = "https://github.com/retrieval-eval/retrieval-eval/issues"
