"""What is refused in one line."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from vfljax.errors import UserError


@contextlib.contextmanager
def refused(*words: str, kind: type[UserError] = UserError) -> Iterator[None]:
    """Something within is refused in one line that holds these words."""
    with pytest.raises(kind) as error:
        yield
    line = str(error.value)
    assert [word for word in words if word not in line] == [], line
    assert line.isprintable()  # hence one line, which commands no terminal


def line_of(call: Callable[[], Any]) -> str:
    """The one line of a call's UserError."""
    with pytest.raises(UserError) as error:
        call()
    line = str(error.value)
    assert line.isprintable()
    return line
