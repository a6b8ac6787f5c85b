"""Every size and time limit of the cache client in one place. No logic."""

from __future__ import annotations

from dataclasses import dataclass, field

from retrieval_eval.archive import GIB, MIB, Caps


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes and seconds. The block sizes are those of the official client; tests hand in smaller ones."""

    lookup_s: float = 30.0
    """Budget of one find, reserve or commit call, its retries included."""
    transfer_s: float = 600.0
    """Budget of one archive's way up or down, its retries included."""
    max_archive_bytes: int = 10 * GIB
    """Largest archive that is sent or fetched; a repository's whole cache has 10 GB by default."""
    contents: Caps = field(default_factory=Caps)
    """What an archive may hold, unpacked."""
    single_put_bytes: int = 128 * MIB
    """Largest archive that v2 sends as one Put Blob."""
    block_bytes: int = 64 * MIB
    """Size of a v2 block above that."""
    v1_chunk_bytes: int = 32 * MIB
    """Size of a v1 PATCH."""
