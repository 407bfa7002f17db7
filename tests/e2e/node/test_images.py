"""Dockerfiles are followed to the letter, or not at all."""

from __future__ import annotations

import pytest

from tests.e2e.node.dockerfile import NotUnderstood, Stage, Step, stages


def test_stages_steps_and_configuration_are_read() -> None:
    text = """
# a comment
FROM python:3.13-slim-bookworm AS build
WORKDIR /app
RUN python -m venv /venv \\
    && true
FROM debian:bookworm-slim
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH \\
    ONE=1
USER 1:1
ENTRYPOINT ["python"]
CMD ["-V"]
"""
    system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert stages(text) == [
        Stage(
            base="python:3.13-slim-bookworm",
            name="build",
            steps=[
                Step("WORKDIR", "/app", "/app"),
                Step("RUN", "python -m venv /venv && true", "/app"),
            ],
            environment={"PATH": system},
            workdir="/app",
            settings={},
        ),
        Stage(
            base="debian:bookworm-slim",
            name="",
            steps=[Step("COPY", "--from=build /venv /venv", "/")],
            environment={"PATH": f"/venv/bin:{system}", "ONE": "1"},
            workdir="/",
            settings={"User": "1:1", "Entrypoint": ["python"], "Cmd": ["-V"]},
        ),
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("RUN true", id="before-the-first-stage"),
        pytest.param("FROM a\nHEALTHCHECK NONE", id="an-instruction-that-is-not-known"),
        pytest.param("FROM --platform=linux/amd64 a", id="an-option-of-a-stage"),
        pytest.param("FROM a\nUSER 1\nRUN true", id="a-step-as-another-user"),
    ],
)
def test_what_is_not_understood_is_an_error(text: str) -> None:
    with pytest.raises(NotUnderstood):
        stages(text)
