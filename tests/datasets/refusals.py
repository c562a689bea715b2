"""What every test of a refusal asks: one clear line, of class UserError, that says certain words."""

import pytest

from vfljax.errors import UserError


def one_line(call, *words):
    """The message of a call's UserError, which is one line and says these words."""
    with pytest.raises(UserError) as error:
        call()
    assert len(str(error.value).splitlines()) == 1
    for word in words:
        assert word in str(error.value)
    return str(error.value)
