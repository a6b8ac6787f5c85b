"""The action's inputs: one table that says everything about them, and the frozen settings that it yields.

Owns names, defaults and descriptions; `action.yml` and `docs/action.md` are checked against the table by tests. Reads
nothing but the `INPUT_` variables, opens no file. The token is the one input that is not kept here, but in
`RunnerEnvironment`: settings are logged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from retrieval_eval import values
from retrieval_eval.dataset.download import REVISION
from retrieval_eval.embedding.backends import Backend
from retrieval_eval.embedding.embedder import DEFAULT_MODEL
from retrieval_eval.errors import InputError, SettingsError
from retrieval_eval.github.comment import CommentMode
from retrieval_eval.github.marker import report_id_of
from retrieval_eval.model import Lane
from retrieval_eval.retriever.spec import RetrieverSpec, parse_spec

SAMPLE_NAME = "sample"
"""The value of `dataset` that means the bundled sample."""

MAX_PREFIX_CHARACTERS = 200


class Mode(StrEnum):
    """What a step does: measure, or post the comment of a measuring run that could not."""

    MEASURE = "measure"
    PUBLISH = "publish"


class SaveCache(StrEnum):
    """Whether the Actions cache gets a new entry; `auto` decides by event."""

    AUTO = "auto"
    TRUE = "true"
    FALSE = "false"


@dataclass(frozen=True, slots=True)
class Settings:
    """Every input but the token, parsed; None where an input without default was not given."""

    mode: Mode
    dataset: str | None
    dataset_revision: str
    dataset_sha256: str | None
    model: str
    model_revision: str | None
    backend: Backend
    lane: tuple[Lane, ...]
    retriever: RetrieverSpec
    compare_retriever: RetrieverSpec | None
    compare_report: str | None
    k: tuple[int, ...]
    cache: bool
    cache_path: str
    cache_key_prefix: str
    save_cache: SaveCache
    cache_from: str | None
    cache_from_sha256: str | None
    summary: bool
    comment: CommentMode
    report_id: str | None
    pr_number: int | None
    report_path: str
    comment_folder: str


@dataclass(frozen=True, slots=True)
class Input:
    """One input. `parse` gets a non-empty text, stripped of blanks, and raises ValueError or `InputError`."""

    name: str
    default: str
    description: str
    parse: Callable[[str], Any]

    @property
    def variable(self) -> str:
        """The environment variable by which the runner hands it over: upper case, dashes stay."""
        return f"INPUT_{self.name.upper()}"


def _choice(kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    return lambda text: kind(values.one_of(text, list(kind)))


def _save_cache(text: str) -> SaveCache:
    if text == SaveCache.AUTO:
        return SaveCache.AUTO
    try:
        return SaveCache.TRUE if values.boolean(text) else SaveCache.FALSE
    except ValueError:
        raise ValueError(f"got {text!r}, expected auto, true or false") from None


def _key_prefix(text: str) -> str:
    if "," in text or not text.isprintable() or len(text) > MAX_PREFIX_CHARACTERS:
        raise ValueError(f"got {text[:80]!r}, expected at most {MAX_PREFIX_CHARACTERS} characters and no comma")
    return text


TOKEN = Input(
    "github-token",
    "${{ github.token }}",
    "Token that finds the pull request and writes the comment; the job needs `pull-requests: write`.",
    str,
)

INPUTS: tuple[Input, ...] = (
    Input(
        "mode",
        "measure",
        "`measure`, or `publish` to post, from a `workflow_run` workflow, the comment of a run whose token could not.",
        _choice(Mode),
    ),
    Input(
        "dataset",
        "",
        "Required to measure. `sample` (bundled), a path in the workspace, or the name of a published file: "
        "`longmemeval_oracle.json`, `longmemeval_s_cleaned.json`, `longmemeval_m_cleaned.json`.",
        str,
    ),
    Input("dataset-revision", REVISION, "Revision of the published file.", str),
    Input(
        "dataset-sha256",
        "",
        "SHA-256 that the published file must have; known for the three names at the default revision.",
        values.sha256_digest,
    ),
    Input("model", DEFAULT_MODEL, "Embedding model: a repository of the hub, or a folder in the workspace.", str),
    Input("model-revision", "", "Revision of a model of the hub; pinned for the default model, else `main`.", str),
    Input(
        "backend",
        "auto",
        "`auto`, `onnx`, `openvino` or `sentence-transformers` (the last two only in an image built with them).",
        _choice(Backend),
    ),
    Input("lane", "both", "`both`, `model-dependent` or `model-free`.", values.lanes),
    Input(
        "retriever",
        "builtin:hybrid",
        "What is measured: `builtin:hybrid`, `builtin:hybrid-fts5`, `builtin:semantic`, `builtin:bm25`, "
        "or the command line of a program that speaks the retriever protocol.",
        parse_spec,
    ),
    Input("compare-retriever", "", "A second retriever, measured in the same run, to compare with.", parse_spec),
    Input("compare-report", "", "A report JSON in the workspace to compare with instead.", str),
    Input("k", "1,5,10", "Cut-offs, separated by commas.", values.ks),
    Input("cache", "true", "Whether embedding cache and data file travel in the Actions cache.", values.boolean),
    Input(
        "cache-path",
        ".embcache",
        "Folder of the embedding cache, relative to the workspace; `actions/cache` can share it.",
        values.relative_path,
    ),
    Input("cache-key-prefix", "retrieval-eval", "What the keys of our cache entries begin with.", _key_prefix),
    Input(
        "save-cache",
        "auto",
        "`true`, `false`, or `auto`: on push, schedule, workflow_dispatch and repository_dispatch.",
        _save_cache,
    ),
    Input(
        "cache-from",
        "",
        "A published cache to take vectors from before anything is embedded: URL, archive or its manifest.",
        str,
    ),
    Input("cache-from-sha256", "", "SHA-256 that this archive must have.", values.sha256_digest),
    Input("summary", "true", "Whether the report goes to the job summary.", values.boolean),
    Input(
        "comment",
        "always",
        "Pull-request comment: `always`, `changes` (a first one only where something moved) or `off`.",
        _choice(CommentMode),
    ),
    Input(
        "report-id",
        "",
        "Which comment this is, so that several stand side by side; by default workflow and job. "
        "With `mode: publish`: the only one that may be posted.",
        report_id_of,
    ),
    Input("pr-number", "", "Pull request to comment on; by default the one of the event.", values.whole_number),
    Input(
        "report-path",
        "retrieval-report.json",
        "Where the report JSON goes, relative to the workspace.",
        values.relative_path,
    ),
    Input(
        "comment-folder",
        "retrieval-comment",
        "Where a comment that could not be posted is put, and where `mode: publish` reads it.",
        values.relative_path,
    ),
)


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Parse all inputs. Blanks around a value are dropped; an empty one means the default.

    Raises `SettingsError` with one sentence for each input that is wrong.
    """
    parsed: dict[str, Any] = {}
    problems: list[str] = []
    for each in INPUTS:
        text = environ.get(each.variable, "").strip() or each.default
        try:
            parsed[each.name.replace("-", "_")] = each.parse(text) if text else None
        except (ValueError, InputError) as error:
            problems.append(f"input {each.name!r}: {error}")
    problems += _contradictions(parsed)
    if problems:
        raise SettingsError(problems)
    return Settings(**parsed)


def _contradictions(parsed: Mapping[str, Any]) -> Sequence[str]:
    """What no input shows by itself; `parsed` lacks the inputs that are wrong."""
    problems = []
    if parsed.get("mode") is Mode.MEASURE and parsed.get("dataset", SAMPLE_NAME) is None:
        problems.append("input 'dataset': required, got nothing (hint: dataset: sample)")
    if parsed.get("compare_retriever") and parsed.get("compare_report"):
        problems.append("inputs 'compare-retriever' and 'compare-report': got both, expected one at the most")
    return problems
