"""What the tests of the commands share."""

from collections.abc import Callable

import pytest


@pytest.fixture
def refused(launch) -> Callable[..., str]:
    """``refused(name, *arguments)``: the one line by which a command refuses to run."""

    def run(name: str, *arguments: str) -> str:
        done = launch(name, *arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
        assert done.stderr[:-1].isprintable()
        return done.stderr

    return run
