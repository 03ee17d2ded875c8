# codea1 for training on CPUs, and the judge over HTTP. `make image` builds it.
#
#   docker run --rm codea1 doctor --backend local
#   docker run --rm -v "$PWD/runs:/opt/codea1/runs" --entrypoint python codea1 agents/train_grpo.py --preset smoke
#   docker run --rm -p 8000:8000 codea1 serve --host 0.0.0.0
#
# `doctor` says what the sandbox can do in a container: where namespaces are denied, it runs without them and says so.
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}
WORKDIR /opt/codea1
COPY . .
# EXTRAS: of pyproject.toml; `serve` alone is small. PIP_OPTIONS: e.g. where packages come from.
ARG EXTRAS=train,lora,serve,worlds
ARG PIP_OPTIONS=""
RUN python3 -m pip install --no-cache-dir ${PIP_OPTIONS} -c constraints.txt ".[${EXTRAS}]"
ENV CODEA1_CACHE=/opt/codea1/runs/cache PYTHONUNBUFFERED=1
ENTRYPOINT ["codea1"]
CMD ["--help"]
