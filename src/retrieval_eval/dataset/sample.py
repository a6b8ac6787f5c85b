"""Where the bundled sample is: questions and sessions written for this project, in LongMemEval's shape."""

from __future__ import annotations

from pathlib import Path

SAMPLE = Path(__file__).with_name("longmemeval_sample.json")
