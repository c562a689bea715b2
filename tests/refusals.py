"""What is refused in one line."""

import contextlib
import pathlib
from collections.abc import Iterator

import pytest

from vfljax import store
from vfljax.errors import UserError


@contextlib.contextmanager
def refused(*words: str, kind: type[UserError] = UserError) -> Iterator[None]:
    """Something within is refused in one line that holds these words."""
    with pytest.raises(kind) as error:
        yield
    line = str(error.value)
    assert [word for word in words if word not in line] == [], line
    assert line.isprintable()  # hence one line, which commands no terminal


@contextlib.contextmanager
def damaged(workdir: pathlib.Path, unit: str, why: str) -> Iterator[None]:
    """A part of a sweep is refused as damaged in one line, which says why and names the remedy."""
    with pytest.raises(store.Damaged, match=why) as error:
        yield
    line = str(error.value)
    assert error.value.unit == unit
    assert line.startswith(f"{workdir / unit} is damaged (")
    assert f"`vfljax sweep --workdir={workdir}`" in line
    assert len(line.splitlines()) == 1
