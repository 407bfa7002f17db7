# The base image is pinned by tag; a registry mirror may pin it further by digest.
FROM python:3.13-slim-bookworm AS build
WORKDIR /app
COPY requirements.txt .
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements.txt \
    && /venv/bin/pip uninstall --yes pip

FROM python:3.13-slim-bookworm
RUN groupadd --gid 65532 hooks && useradd --uid 65532 --gid 65532 --no-create-home hooks
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
