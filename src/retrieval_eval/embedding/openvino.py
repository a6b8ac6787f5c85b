"""The `openvino` backend: Intel's runtime on the same `onnx/model.onnx`, the fastest on CPUs. Only home of openvino."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt

from retrieval_eval.embedding.one_by_one import OUTPUTS, Ids, OneByOneEmbedder
from retrieval_eval.errors import ModelError


class OpenVinoEmbedder(OneByOneEmbedder):
    """Float32 by order (its default is bfloat16 where the processor has it), a stream a thread.

    A text of the most tokens, as nearly every session is, goes through a model compiled for that length alone; a
    shorter one through a model of any length.
    """

    backend = "openvino"

    def _load(self, file: Path) -> None:
        try:
            import openvino  # noqa: PLC0415 - an extra of the package
        except ImportError as error:
            raise ModelError(
                "needs the package openvino, which is not installed",
                where="backend openvino",
                hint="pip install 'retrieval-eval[openvino]', or take the backend onnx",
            ) from error
        core = openvino.Core()
        settings = {
            "INFERENCE_PRECISION_HINT": "f32",
            "NUM_STREAMS": self._threads,
            "INFERENCE_NUM_THREADS": self._threads,
        }
        model = core.read_model(str(file))
        self._inputs = {port.get_any_name() for port in model.inputs}
        names = [port.get_any_name() for port in model.outputs]
        self._output = names.index(next((name for name in OUTPUTS if name in names), names[0]))
        self._any_length = core.compile_model(model, "CPU", settings)
        model.reshape({name: [1, self.identity.max_tokens] for name in self._inputs})
        self._full_length = core.compile_model(model, "CPU", settings)
        self._requests = threading.local()

    def _token_vectors(self, feeds: dict[str, Ids]) -> npt.NDArray[np.float32]:
        is_full = feeds["input_ids"].shape[1] == self.identity.max_tokens
        kept = "full" if is_full else "any"
        request = getattr(self._requests, kept, None)
        if request is None:
            request = (self._full_length if is_full else self._any_length).create_infer_request()
            setattr(self._requests, kept, request)
        request.infer({name: feeds[name] for name in self._inputs & feeds.keys()})
        return np.array(request.get_output_tensor(self._output).data)
