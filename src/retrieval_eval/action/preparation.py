"""From the settings to an embedding cache that is ready to run on, with the Actions cache before and after.

Owns what is restored and saved when, under which keys, and what becomes of a restored cache that cannot be used: it is
a stranger's data, so it is put aside and prep starts anew. What the entries look like is `github/actions_cache`'s.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from retrieval_eval import __version__
from retrieval_eval.action.job import Job
from retrieval_eval.action.settings import SAMPLE_NAME
from retrieval_eval.cache.manifest import Manifest
from retrieval_eval.dataset import DatasetReader
from retrieval_eval.dataset.download import PublishedFile, fetch, published_file
from retrieval_eval.dataset.sample import SAMPLE
from retrieval_eval.digest import sha256_of
from retrieval_eval.errors import DatasetError, ModelError, RetrieverError
from retrieval_eval.github.actions_cache import AlreadyThere, Miss, NotSaved, Restored, Saved, cache_keys
from retrieval_eval.pipeline import Model, Prepared, Seed, prep
from retrieval_eval.sharing.restoring import Source, unpacked

T = TypeVar("T")

KEY_HEX_DIGITS = 20
DATASET_FOLDER = "dataset"


@dataclass(frozen=True, slots=True)
class Dataset:
    """The data file: its digest, and how to get at it, as a cache that fits makes a download needless."""

    digest: str
    get: Callable[[], Path]


@dataclass(frozen=True, slots=True)
class Hit:
    """What the Actions cache gave. `is_exact`: an entry of this model, this data file and this version of ours."""

    matched_key: str = ""
    is_exact: bool = False


def find_dataset(job: Job, name: str) -> Dataset:
    """Locate the data file and learn its digest; fetches a published file only where its digest is not known.

    Raises `DatasetError` where there is no such file, or it cannot be LongMemEval data.
    """
    path = SAMPLE if name == SAMPLE_NAME else job.environment.workspace / name
    published = published_file(name, job.settings.dataset_revision, job.settings.dataset_sha256)
    if published is None or path.exists():
        DatasetReader(path)
        return Dataset(sha256_of(path), lambda: path)
    if published.sha256:
        return Dataset(published.sha256, lambda: _carried(job, published))
    job.degrade(
        f"{published.name} at {published.revision} was not verified: its digest is not known (hint: dataset-sha256)"
    )
    fetched = fetch(published, job.scratch, job.http, job.endpoint)
    return Dataset(sha256_of(fetched), lambda: fetched)


def _carried(job: Job, published: PublishedFile) -> Path:
    """The published file, from the Actions cache where it is there and has the right digest, else from the hub."""
    folder, cache = job.scratch / DATASET_FOLDER, job.actions_cache(job.scratch)
    target, prefix = folder / published.name, job.settings.cache_key_prefix.rstrip("-")
    content = f"{prefix}-dataset-{str(published.sha256)[:KEY_HEX_DIGITS]}-"
    with job.log.group("Data file") as stage:
        if job.settings.cache:
            found = cache.restore(DATASET_FOLDER, f"{content}{job.run_name}-", [content])
            if isinstance(found, Restored) and target.is_file() and sha256_of(target) == published.sha256:
                stage.figures = found.reason
                return target
        fetch(published, folder, job.http, job.endpoint)
        stage.figures = f"downloaded {target.stat().st_size} bytes"
        if job.is_saving:
            _told(job, cache.save(DATASET_FOLDER, f"{content}{job.run_name}-"))
    return target


def _told(job: Job, outcome: Saved | AlreadyThere | NotSaved) -> str:
    if isinstance(outcome, NotSaved) and outcome.is_degraded:
        job.degrade(outcome.reason)
    return outcome.reason


class Preparation:
    """One job's way to a ready cache. `hit` says what was restored."""

    def __init__(self, job: Job, model: Model, dataset: Dataset) -> None:
        self._job, self._model, self._dataset = job, model, dataset
        self._cache = job.actions_cache(job.environment.workspace)
        content = hashlib.sha256(f"{dataset.digest} {__version__}".encode()).hexdigest()
        self.hit = Hit()
        self._key, self._restore_keys = cache_keys(
            job.settings.cache_key_prefix,
            model.identity.fingerprint[:KEY_HEX_DIGITS],
            content[:KEY_HEX_DIGITS],
            job.run_name,
        )

    def restore(self) -> str:
        """Put the best entry of the Actions cache in place; says in a sentence part what came of it."""
        if not self._job.settings.cache:
            return "cache: false"
        found = self._cache.restore(self._job.settings.cache_path, self._key, self._restore_keys)
        if isinstance(found, Miss):
            if found.is_degraded:
                self._job.degrade(found.reason)
            return found.reason
        self.hit = self._hit(found)
        return f"{found.reason} ({'the same data' if self.hit.is_exact else 'other data'})"

    def use(self, run: Callable[[Prepared], T]) -> T:
        """Prepare, save and `run`; where that breaks on a restored cache, once more without it.

        Raises what prep and `run` raise.
        """
        try:
            return run(self._prepare(self._key))
        except (DatasetError, ModelError, RetrieverError):
            raise
        except Exception as error:
            # Who made the cache may have made it to break us in a way that we did not think of.
            if not self.hit.matched_key:
                raise
            self._job.degrade(f"the restored cache was not used: {error}")
        self.hit = Hit()
        _remove(self._job.cache_folder)
        return run(self._prepare(f"{self._key}2-"))

    def _prepare(self, key: str) -> Prepared:
        done = self._already_there()
        if done is None:
            data = self._dataset.get()
            with self._job.log.group("Prep") as stage:
                done = prep(data, self._job.cache_folder, self._model, self._job.effects, seed=self._seed())
                stage.figures = f"{done.pairs} questions, {done.reused} texts reused, {done.embedded} embedded"
            self._save(key)
        return done

    def _seed(self) -> Seed | None:
        """How to open the published cache that the settings name."""
        settings = self._job.settings
        if settings.cache_from is None:
            return None
        source = Source.parse(settings.cache_from, settings.cache_from_sha256)
        return partial(unpacked, source, self._job.cache_folder, self._model.identity, self._job.http)

    def _already_there(self) -> Prepared | None:
        """What a prep would find where the restored entry is of the same data, model and version: nothing to do."""
        if not self.hit.is_exact:
            return None
        manifest = Manifest.read(self._job.cache_folder)
        if (manifest.dataset_sha256, manifest.fingerprint) != (self._dataset.digest, self._model.identity.fingerprint):
            return None
        done = Prepared(manifest.pairs, manifest.reused + manifest.embedded, 0)
        self._job.log.info(f"Prep: not needed · {done.pairs} questions, {done.reused} texts reused, 0 embedded")
        return done

    def _save(self, key: str) -> None:
        job = self._job
        if job.is_saving:
            with job.log.group("Save the embedding cache") as stage:
                stage.figures = _told(job, self._cache.save(job.settings.cache_path, key))
        elif job.has_cache_service:
            job.log.info(
                "Save the embedding cache: not in this event (hint: run on push to the default branch as well)"
            )

    def _hit(self, found: Restored) -> Hit:
        is_exact = found.matched_key.lower().startswith(self._restore_keys[0].lower())
        return Hit(found.matched_key, is_exact)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
