"""How many cores this process may use. Owns that question only."""

from __future__ import annotations

import os


def available_cores() -> int:
    """Cores that the scheduler lets this process run on; all of the machine's where the system cannot say."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
