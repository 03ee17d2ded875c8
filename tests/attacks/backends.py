"""Sandboxes of every backend, for corpora that are played on all of them: the local one at once, the others slowly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from codea1_env.sandbox import LocalSandbox, RaySandbox, Sandbox

_ON_RAY = (
    pytest.mark.slow,
    pytest.mark.filterwarnings("default::ResourceWarning", "ignore::DeprecationWarning:ray"),
)
BACKENDS = ("local", pytest.param("docker", marks=pytest.mark.slow), pytest.param("ray", marks=_ON_RAY))


def opened(backend: str, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """The body of a fixture of a module. Skips, saying why, where the machine lacks what the backend needs."""
    if backend == "local":
        with LocalSandbox() as local:
            yield local
    elif backend == "docker":
        request.getfixturevalue("engine")
        from codea1_env.sandbox.docker.backend import DockerSandbox
        from codea1_env.sandbox.docker.image import build_image

        image = "codea1-sandbox:test-worlds"  # with the packages: without them their attacks would only not load
        build_image(image, say=lambda message: None)
        with DockerSandbox(image=image) as docker:
            yield docker
    else:
        pytest.importorskip("ray", reason="the Ray backend needs the extra `ray`")
        with pytest.MonkeyPatch.context() as patch, RaySandbox(workers=2, address="local") as ray:
            patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
            yield ray
