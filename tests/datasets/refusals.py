"""What every test of a refusal asks: one clear line, of class UserError, that says certain words."""

import pytest

from vfljax.errors import UserError


def refused(what, *args, match=None, **options):
    """The one line that a call raises; ``match`` is a regular expression of it."""
    with pytest.raises(UserError, match=match) as error:
        what(*args, **options)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def one_line(call, *words):
    """The message of a call's UserError, which is one line and says these words."""
    message = refused(call)
    for word in words:
        assert word in message
    return message
