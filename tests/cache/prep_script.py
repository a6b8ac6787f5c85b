"""Run by tests in a process of its own: a prep that dies at a given step, or under given limits.

The only argument is a JSON object: `data`, `folder`; `kill`: "<step> <count>" at which it kills itself;
`max_file_bytes`: the largest file that it may write; `user`: the user that it becomes; `do`: prep (default) or run.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path

import fake_model

from retrieval_eval import pipeline
from retrieval_eval.cache import schema
from retrieval_eval.errors import InputError
from retrieval_eval.pipeline import RunRequest, prep, run
from retrieval_eval.retriever.spec import parse_spec


def main(options: dict[str, object]) -> int:
    def moment(step: str, count: int) -> None:
        if f"{step} {count}" == options.get("kill"):
            os.kill(os.getpid(), signal.SIGKILL)

    embedder = fake_model.FakeEmbedder(moment=moment)
    model = fake_model.model(embedder, moment)
    lay_out = schema.create

    def create(connection: object) -> None:
        lay_out(connection)  # type: ignore[arg-type]  # handed on as it came
        moment("create", 1)

    schema.create = create
    pipeline.COMMIT_TEXTS = 4
    if "max_file_bytes" in options:
        most = int(str(options["max_file_bytes"]))
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    folder = Path(str(options["folder"]))

    def work() -> None:
        if options.get("do") == "run":
            run(
                RunRequest(cache=folder, spec=parse_spec("builtin:hybrid")), lambda _: model, fake_model.effects(moment)
            )
        else:
            prep(Path(str(options["data"])), folder, model, fake_model.effects(moment))

    try:
        if "user" in options:
            if options.get("do") == "run" and os.access(folder, os.X_OK):
                work()  # whatever it imports as it goes: Python itself may be closed to that user
            os.setgroups([])
            os.setuid(int(str(options["user"])))
        work()
    except InputError as error:
        print(f"{type(error).__name__}: {error}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
