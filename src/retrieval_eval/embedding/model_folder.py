"""Where a model's files are: a local folder, or a pinned snapshot of a hub repository.

The only home of huggingface_hub. Finds, checks and fingerprints files; loads no model.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrieval_eval.digest import sha256_of
from retrieval_eval.embedding.embedder import DEFAULT_MODEL, DEFAULT_REVISION, MAX_TOKENS, ModelIdentity
from retrieval_eval.errors import ModelError, said
from retrieval_eval.model import RENDERING_VERSION

HUB_TIMEOUT_S = 15.0
SETTINGS_FILES = ("config.json", "tokenizer.json")
ONNX_FILES = ("onnx/model.onnx", "model.onnx")
TORCH_FILES = ("model.safetensors",)  # no pickle: `pytorch_model.bin` would run code
_SMALL_FILES = ("*.json", "vocab.txt", "1_Pooling/config.json")


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model's files, all of them there, and the identity of the vectors that they make."""

    path: Path
    identity: ModelIdentity
    onnx: Path | None
    torch: Path | None


def find_model(model: str = DEFAULT_MODEL, revision: str | None = None) -> ModelFolder:
    """Locate `model`: an existing folder, else a hub repository at `revision` (the pinned one for the default model).

    Raises `ModelError` naming the folder or repository and what is missing, within seconds also without a network.
    """
    local = Path(model).expanduser()
    if local.is_dir():
        return _inspect(local, name=local.resolve().name, content=f"sha256:{_digest(local)}")
    if local.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
        raise ModelError(
            "no such model folder",
            where=f"model {model!r}",
            hint="give a folder, or a repository such as " + DEFAULT_MODEL,
        )
    if revision is None:
        revision = DEFAULT_REVISION if model == DEFAULT_MODEL else "main"
    snapshot = _snapshot(model, revision)
    return _inspect(snapshot, name=model, content=snapshot.name)


def _snapshot(repository: str, revision: str) -> Path:
    """The folder of the repository's files at `revision`, from the hub's cache or fetched into it."""
    import huggingface_hub  # noqa: PLC0415 - half a second; a local folder does not need it
    from huggingface_hub import errors  # noqa: PLC0415 - as above

    where = f"model {repository!r} at revision {revision}"
    try:
        cached = Path(huggingface_hub.snapshot_download(repository, revision=revision, local_files_only=True))
        if _is_complete(cached):
            return cached
    except (errors.LocalEntryNotFoundError, errors.HFValidationError):
        pass
    try:
        # Asks once, where `snapshot_download` would ask an unreachable hub for half a minute.
        info = huggingface_hub.HfApi().model_info(repository, revision=revision, timeout=HUB_TIMEOUT_S)
        weights = ONNX_FILES[0] if ONNX_FILES[0] in {file.rfilename for file in info.siblings or ()} else TORCH_FILES[0]
        fetched = huggingface_hub.snapshot_download(
            repository, revision=info.sha, allow_patterns=[*_SMALL_FILES, f"{weights}*"], etag_timeout=HUB_TIMEOUT_S
        )
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.HFValidationError) as error:
        raise ModelError(
            "the hub has no such model",
            where=where,
            hint=f"give a repository such as {DEFAULT_MODEL}, or a folder with the model's files",
        ) from error
    except Exception as error:
        raise ModelError(
            f"not in the local hub cache, and the hub cannot be reached ({type(error).__name__})",
            where=where,
            hint="give --model a folder with the model's files, or set HF_HOME to a hub cache that has it",
        ) from error
    return Path(fetched)


def _is_complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in SETTINGS_FILES) and bool(_first(folder, ONNX_FILES + TORCH_FILES))


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _inspect(folder: Path, *, name: str, content: str) -> ModelFolder:
    missing = [file for file in SETTINGS_FILES if not (folder / file).is_file()]
    onnx, torch = _first(folder, ONNX_FILES), _first(folder, TORCH_FILES)
    if onnx is None and torch is None:
        missing.append(f"weights ({ONNX_FILES[0]} or {TORCH_FILES[0]})")
    if missing:
        raise ModelError(
            f"incomplete, missing {' and '.join(missing)}",
            where=f"model folder {folder}",
            hint="fetch the model's repository whole; a partial copy is never used",
        )
    config = _read_config(folder / "config.json")
    dims = _whole_number(config, "hidden_size", folder)
    positions = _whole_number(config, "max_position_embeddings", folder)
    identity = ModelIdentity(
        name=name, content=content, dims=dims, rendering=RENDERING_VERSION, max_tokens=min(MAX_TOKENS, positions)
    )
    return ModelFolder(folder, identity, onnx, torch)


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError("cannot be read as JSON", where=str(path), got=said(error)) from error
    if not isinstance(config, dict):
        raise ModelError("model settings", where=str(path), got=type(config).__name__, expected="an object")
    return config


def _whole_number(config: dict[str, Any], field: str, folder: Path) -> int:
    value = config.get(field)
    if type(value) is not int or value < 1:
        where = str(folder / "config.json")
        raise ModelError(f"field {field!r}", where=where, got=repr(value), expected="a whole number above 0")
    return value


def _digest(folder: Path) -> str:
    """SHA-256 over every file's path and content, hidden ones left out, in path order."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in relative.parts):
            whole.update(f"{relative.as_posix()}\0{sha256_of(path)}\n".encode())
    return whole.hexdigest()
