# The container action. Its context is this folder; `.dockerignore` lets in only what is copied below.
# Size, and what it is made of: docs/action.md.

# For a release, pin it: --build-arg BASE=python:3.13-slim-trixie@sha256:…
ARG BASE=python:3.13-slim-trixie

# What the package needs. A change of our code does not touch this stage.
FROM ${BASE} AS dependencies
# Empty: ONNX Runtime alone, enough for every model with an ONNX file. "sentence-transformers": torch for all the others.
ARG EXTRAS=""
# Where torch comes from if it is wanted at all: wheels for CPUs, far smaller than the others. Empty: the usual index.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
COPY pyproject.toml constraints.txt ./
RUN python -m venv --without-pip /opt/retrieval-eval \
 && python -c "import tomllib; project = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
      print(*project['dependencies'], *project['optional-dependencies'].get('$EXTRAS', []), sep='\n')" > requirements.txt \
 && python -m pip --python /opt/retrieval-eval/bin/python install \
      ${EXTRAS:+${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"}} --constraint constraints.txt --requirement requirements.txt
# Never imported: test suites, zstandard's second backend, and ONNX Runtime's tools for making models.
RUN cd /opt/retrieval-eval/lib/python3.*/site-packages \
 && find . -type d -name tests -prune -exec rm -r {} + \
 && rm -r zstandard/_cffi.*.so onnxruntime/transformers onnxruntime/tools onnxruntime/quantization onnxruntime/datasets

# Our code alone, as a folder of site-packages.
FROM dependencies AS package
COPY README.md LICENSE ./
COPY src src
RUN python -m pip install --no-deps --target /package . && rm -r /package/bin

FROM ${BASE}
ARG VERSION=""
ARG REVISION=""
LABEL org.opencontainers.image.title="retrieval-eval" \
      org.opencontainers.image.description="LongMemEval recall@k of a memory layer, on every pull request" \
      org.opencontainers.image.source="https://github.com/retrieval-eval/retrieval-eval" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=dependencies /opt/retrieval-eval /opt/retrieval-eval
COPY --from=package /package /opt/retrieval-eval/lib/python3.13/site-packages
ENV PATH=/opt/retrieval-eval/bin:$PATH
# No USER: the runner mounts files that only root may write (outputs, summary, workspace). What is left behind in the
# workspace is given to its owner. -I keeps the checkout, which is the working directory, off the import path.
ENTRYPOINT ["python", "-I", "-m", "retrieval_eval.action"]
