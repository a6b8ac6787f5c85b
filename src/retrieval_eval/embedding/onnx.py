"""The `onnx` backend: ONNX Runtime on a repository's `onnx/model.onnx`. The only home of onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

from retrieval_eval.embedding.one_by_one import OUTPUTS, Ids, OneByOneEmbedder


class OnnxEmbedder(OneByOneEmbedder):
    """One session of one intra-op thread, shared by all Python threads."""

    backend = "onnx"

    def _load(self, file: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        self._inputs = {declared.name for declared in self._session.get_inputs()}
        names = [declared.name for declared in self._session.get_outputs()]
        self._output = next((name for name in OUTPUTS if name in names), names[0])

    def _token_vectors(self, feeds: dict[str, Ids]) -> npt.NDArray[np.float32]:
        wanted = {name: feeds[name] for name in self._inputs & feeds.keys()}
        return np.asarray(self._session.run([self._output], wanted)[0])
