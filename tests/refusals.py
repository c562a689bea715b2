"""What is refused in one line."""

import contextlib
from collections.abc import Iterator

import pytest

from vfljax.errors import UserError


@contextlib.contextmanager
def refused(*words: str, kind: type[UserError] = UserError) -> Iterator[None]:
    """Something within is refused in one line that holds these words."""
    with pytest.raises(kind) as error:
        yield
    line = str(error.value)
    assert [word for word in words if word not in line] == [], line
    assert "\n" not in line
