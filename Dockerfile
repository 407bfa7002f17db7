# The base image is pinned by tag; a registry mirror may pin it further by digest.
FROM python:3.13-slim-bookworm AS build
WORKDIR /app
COPY requirements.txt .
# Wheels only, each with its hash: nothing is compiled, and no compiler is needed in any stage.
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements.txt \
    && /venv/bin/pip uninstall --yes pip

FROM python:3.13-slim-bookworm
LABEL org.opencontainers.image.title="database-hooks" \
      org.opencontainers.image.description="Metacontroller hooks for PostgreSQL tenants, init SQL and Druid ingestion" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --gid 65532 hooks && useradd --uid 65532 --gid 65532 --no-create-home hooks
# Owned by root: the program cannot change itself.
COPY --from=build /venv /venv
WORKDIR /app
COPY hooks ./hooks
ENV PATH=/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    MALLOC_ARENA_MAX=2 \
    MALLOC_TRIM_THRESHOLD_=131072
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["python", "-m", "hooks"]
CMD ["serve"]
