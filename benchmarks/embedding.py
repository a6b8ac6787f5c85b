"""Sessions a second of the embedding backends, in turn on the same texts, beside what the processor could do at most.

The texts are real sessions that fill the model's 512 tokens. The bare loop (ONNX Runtime with its default options, one
sequence a call, mean and norm in numpy) is handed the token ids; the others start from the text, so that their time
includes tokenizing. The limit is the rate of a float32 matrix product on as many threads as there are cores,
divided by the 26.58 GFLOP of a sequence of 512 tokens. fastembed is left out: it fetches a model of its own.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from benchmarks.measuring import compose, header, median, shared, table

from retrieval_eval.cores import available_cores
from retrieval_eval.dataset import DatasetReader
from retrieval_eval.embedding.backends import Backend, load
from retrieval_eval.embedding.embedder import Role
from retrieval_eval.embedding.model_folder import ModelFolder, find_model
from retrieval_eval.embedding.tokens import TokenIds

GFLOP_PER_SEQUENCE = 26.58
TOKENS = 512
GEMM_SIDE = 2048
SLOW_BLAS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
Ids = npt.NDArray[np.int64]
Vectors = list[npt.NDArray[np.float32]]
Way = Callable[[], Vectors]


def _texts(folder: Path, tokens: TokenIds, wanted: int) -> list[str]:
    """The first distinct sessions of the excerpts that have more than 512 tokens."""
    data = compose(folder / "texts.json", instances=20, sessions=48)
    found: dict[str, None] = {}
    for instance in DatasetReader(data).instances():
        for session in instance.sessions:
            if session.text not in found and tokens.encode(session.text)[1]:
                found[session.text] = None
            if len(found) == wanted:
                return list(found)
    sys.exit(f"the excerpts hold only {len(found)} sessions of more than {TOKENS} tokens, wanted {wanted}")


def _bare_loop(model: ModelFolder, sequences: Sequence[Ids]) -> Way:
    import onnxruntime  # noqa: PLC0415 - the peer alone needs it

    session = onnxruntime.InferenceSession(str(model.onnx), providers=["CPUExecutionProvider"])

    def loop() -> Vectors:
        vectors = []
        for ids in sequences:
            row = ids[np.newaxis, :]
            feeds = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
            vector = session.run(["last_hidden_state"], feeds)[0][0].mean(axis=0)
            vectors.append(vector / np.linalg.norm(vector))
        return vectors

    return loop


def _backend(model: ModelFolder, backend: Backend, texts: Sequence[str]) -> Way:
    embedder = load(model, backend)
    return lambda: [made.vector for made in embedder.embed(texts, Role.PASSAGE)]


def _gemm() -> Callable[[], float]:
    """GFLOP/s of a square float32 product: the better of the two libraries that are there."""
    import torch  # noqa: PLC0415 - the limit alone needs it

    torch.set_num_threads(available_cores())
    left, right = (np.random.default_rng(n).standard_normal((GEMM_SIDE, GEMM_SIDE), dtype=np.float32) for n in (0, 1))
    torch_left, torch_right = torch.from_numpy(left), torch.from_numpy(right)

    def rate() -> float:
        rates = []
        for product in (lambda: left @ right, lambda: torch_left @ torch_right):
            started_s = time.perf_counter()
            for _ in range(5):
                product()
            rates.append(5 * 2 * GEMM_SIDE**3 / (time.perf_counter() - started_s) / 1e9)
        return max(rates)

    return rate


def _without_slow_blas() -> None:
    """Start anew without the settings that bind OpenBLAS to an older processor's kernels: they lower the limit."""
    clean = {name: value for name, value in os.environ.items() if name not in SLOW_BLAS}
    if len(clean) < len(os.environ):
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.embedding", *sys.argv[1:]], clean)  # noqa: S606 - ourselves


def _rounds(ways: dict[str, Way], count: int, rounds: int) -> tuple[dict[str, list[float]], list[float]]:
    """Sessions a second of every way, and the limit, in each round; one more round before them warms up."""
    gemm, limit = _gemm(), []
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        print(f"round {number} of {rounds}", file=sys.stderr)
        for name, way in ways.items():
            started_s = time.perf_counter()
            way()
            rates[name].append(count / (time.perf_counter() - started_s))
        limit.append(gemm() / GFLOP_PER_SEQUENCE)
    return {name: values[1:] for name, values in rates.items()}, limit[1:]


def main() -> None:
    _without_slow_blas()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6, help="every way once a round, in turn (default: 6)")
    parser.add_argument("--texts", type=int, default=24, help="sessions a round (default: 24)")
    arguments = parser.parse_args()
    model = find_model(str(shared() / "models" / "bge-small-en-v1.5"))
    tokens = TokenIds(model.path / "tokenizer.json", TOKENS)
    with tempfile.TemporaryDirectory(prefix="retrieval-eval-bench-") as folder:
        texts = _texts(Path(folder), tokens, arguments.texts)
    header(f"Embedding: {len(texts)} sessions of {TOKENS} tokens, {arguments.rounds} rounds")
    ways = {
        "bare ONNX Runtime loop, from token ids": _bare_loop(model, [tokens.encode(text)[0] for text in texts]),
        "ours: onnx, from texts": _backend(model, Backend.ONNX, texts),
        "ours: openvino, from texts": _backend(model, Backend.OPENVINO, texts),
        "ours: sentence-transformers, from texts": _backend(model, Backend.SENTENCE_TRANSFORMERS, texts),
    }
    bare, *others = (way() for way in ways.values())
    differences = [0.0, *(max(float(np.abs(a - b).max()) for a, b in zip(bare, o, strict=True)) for o in others)]
    rates, limit = _rounds(ways, len(texts), arguments.rounds)
    loop = next(iter(rates.values()))
    rows = []
    for (name, values), difference in zip(rates.items(), differences, strict=True):
        to_loop = median(v / b for v, b in zip(values, loop, strict=True))
        to_limit = median(v / m for v, m in zip(values, limit, strict=True))
        rows.append((name, f"{median(values):.1f}", f"{to_loop:.2f}", f"{to_limit:.2f}", f"{difference:.1e}"))
    gflops = median(limit) * GFLOP_PER_SEQUENCE
    rows.append((f"limit: GEMM at {gflops:.0f} GFLOP/s", f"{median(limit):.1f}", "", "1.00", ""))
    table(("way", "sessions/s", "to the loop", "to the limit", "largest difference"), rows)


if __name__ == "__main__":
    main()
