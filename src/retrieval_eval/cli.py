"""The command line: options, errors to exit codes. What the commands do is `commands.py`, imported when one runs."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from retrieval_eval import __version__, values
from retrieval_eval.errors import InputError
from retrieval_eval.exits import EXIT_BUG, EXIT_INPUT, EXIT_INTERRUPTED, EXIT_OK, ISSUES_URL
from retrieval_eval.report.escape import plain

PROGRAM_LOG = "retrieval_eval.retriever.stderr"
"""The logger of `retriever/process.py` for lines of the measured program."""
LOG_LINE_CHARS = 1000
ERROR_CHARS = 4000
"""As long as an error gets: it may quote a file, a program or an archive of strangers."""

INTERRUPTED = {"prep": "interrupted: what was embedded so far is kept, the same command goes on from there"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. 0: done; 2: wrong input; 1: our own bug; 130: interrupted. Numbers never set it."""
    arguments = _parser().parse_args(argv)
    _log_to_stderr(is_debug=arguments.debug)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        from retrieval_eval import commands  # noqa: PLC0415 - numpy and more, which `--help` does not need

        commands.COMMANDS[arguments.command](arguments)
    except InputError as error:
        _tell(plain(f"error: {error}", ERROR_CHARS), arguments)
        return EXIT_INPUT
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second Ctrl-C ends us at once, without a traceback
        _tell(INTERRUPTED.get(arguments.command, "interrupted"), arguments)
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last line of defence: name it, and say where to report it
        _tell(
            f"{plain(f'bug: {type(error).__name__}: {error}', ERROR_CHARS)}\n"
            f"This is our mistake. Please report it with the output of --debug: {ISSUES_URL}",
            arguments,
        )
        return EXIT_BUG
    return EXIT_OK


def _log_to_stderr(*, is_debug: bool) -> None:
    """Warnings, and what a measured program writes on its stderr."""
    logging.basicConfig(level=logging.DEBUG if is_debug else logging.WARNING, handlers=[_Lines()])
    logging.getLogger(PROGRAM_LOG).setLevel(logging.INFO)


class _Lines(logging.Handler):
    """One line a record: a message may hold text from strangers. `sys.stderr` is looked up anew, as bars replace it."""

    def emit(self, record: logging.LogRecord) -> None:
        level = "" if record.name == PROGRAM_LOG else f"{record.levelname}: "
        print(plain(f"{level}{record.getMessage()}", LOG_LINE_CHARS), file=sys.stderr)  # noqa: T201 - as in `_tell`


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _tell(text: str, arguments: argparse.Namespace) -> None:
    """What went wrong, to stderr; under --debug after its traceback."""
    if arguments.debug:
        traceback.print_exc()
    print(text, file=sys.stderr)  # noqa: T201 - stderr is where people read


def _option(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """An argparse type that says what our own parser says."""

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="retrieval-eval",
        description="How well does a memory layer retrieve? LongMemEval recall@k, right to the digit.",
    )
    parser.add_argument("--version", action="version", version=f"retrieval-eval {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="command")
    for name, add_options, summary in (
        ("prep", _prep, "embed a LongMemEval file once, into a cache"),
        ("merge", _merge, "unite the caches of shards into one"),
        ("export", _export, "pack a finished cache into an archive for others"),
        ("run", _run, "measure a retriever on a prepared cache"),
        ("compare", _compare, "show what moved between two reports"),
        ("score", _score, "score ranked lists that another program made"),
        ("render", _render, "draw a report as Markdown"),
        ("conformance", _conformance, "try a program against the retriever protocol"),
        ("demo", _demo, "prep and run on the bundled sample"),
    ):
        command = commands.add_parser(name, help=summary, description=summary)
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        add_options(command)
    return parser


def _cache_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cache", type=Path, required=True, metavar="DIR", help="folder of the embedding cache")


def _k_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--k", default="1,5,10", type=_option(values.ks), help="cut-offs (default: 1,5,10)")


def _model_options(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("--model", metavar="ID|PATH", help=f"hub repository or folder (default: {default})")
    parser.add_argument("--revision", help="commit, tag or branch of a hub repository (default: the pinned one)")
    parser.add_argument("--backend", default="auto", choices=["auto", "onnx", "openvino", "sentence-transformers"])


def _report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report here instead of stdout")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the report as Markdown too")


def _prep(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", nargs="?", help="a LongMemEval file, plain or gzip")
    _cache_option(parser)
    _model_options(parser, "BAAI/bge-small-en-v1.5")
    parser.add_argument("--shard", metavar="I/N", help="embed part I of N only, for `merge` to unite")
    parser.add_argument(
        "--from",
        dest="source",
        metavar="ARCHIVE|URL|MANIFEST.json",
        help="a published cache: its vectors are taken over; without DATA it becomes the cache",
    )
    parser.add_argument("--from-sha256", metavar="HEX", help="the digest that the archive must have")


def _merge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", type=Path, metavar="OUT", help="folder of the united cache; goes on if it is there")
    parser.add_argument("parts", type=Path, nargs="+", metavar="DIR", help="caches of one data file and one model")


def _export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("archive", type=Path, metavar="ARCHIVE.tar.zst")
    _cache_option(parser)
    parser.add_argument("--url", help="where it will be: makes what is printed a manifest for `prep --from`")


def _run(parser: argparse.ArgumentParser) -> None:
    _cache_option(parser)
    parser.add_argument(
        "--lane", default="both", type=_option(values.lanes), help="both, model-dependent or model-free"
    )
    parser.add_argument("--retriever", default="builtin:hybrid", metavar="SPEC", help="default: builtin:hybrid")
    parser.add_argument("--compare-retriever", metavar="SPEC", help="a second one, measured in the same run")
    _k_option(parser)
    _model_options(parser, "the one that prep used")
    _report_options(parser)
    parser.add_argument("--trec-run", type=Path, metavar="FILE", help="write the ranked lists as a TREC run")
    parser.add_argument("--trec-qrels", type=Path, metavar="FILE", help="write the gold sessions as TREC qrels")


def _compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("base", type=Path, metavar="BASE.json")
    parser.add_argument("head", type=Path, metavar="HEAD.json")
    _report_options(parser)


def _score(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ranked", type=Path, metavar="RANKED", help="a TREC run, or JSON Lines of question_id, ranked")
    _cache_option(parser)
    _k_option(parser)
    _report_options(parser)


def _render(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", type=Path, metavar="REPORT.json")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write here instead of stdout")


def _conformance(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", nargs="+", metavar="CMD", help="after `--`: the program and its arguments")


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cache", type=Path, metavar="DIR", help="keep the embedding cache here")
    _report_options(parser)


if __name__ == "__main__":
    sys.exit(main())
