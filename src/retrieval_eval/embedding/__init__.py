"""From text to vectors: an `Embedder` protocol, two backends behind it, and a fingerprint of what changes a vector."""
