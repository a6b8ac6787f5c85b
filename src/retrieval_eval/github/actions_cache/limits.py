"""Every size and time limit of the cache client in one place. No logic."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes and seconds. The block sizes are those of the official client; tests hand in smaller ones."""

    lookup_s: float = 30.0
    """Budget of one find, reserve or commit call, its retries included."""
    transfer_s: float = 600.0
    """Budget of one archive's way up or down, its retries included."""
    max_archive_bytes: int = 10 * GIB
    """Largest archive that is sent or fetched; a repository's whole cache has 10 GB by default."""
    max_content_bytes: int = 16 * GIB
    """Largest unpacked archive, tar headers included: what stops a zip bomb."""
    max_members: int = 10_000
    """Most files and folders in one archive."""
    single_put_bytes: int = 128 * MIB
    """Largest archive that v2 sends as one Put Blob."""
    block_bytes: int = 64 * MIB
    """Size of a v2 block above that."""
    v1_chunk_bytes: int = 32 * MIB
    """Size of a v1 PATCH."""
