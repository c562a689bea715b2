"""What `vfljax attack` is asked of a stored sweep, and what of a recorded exchange."""

import pytest

from vfljax.cli import attack
from vfljax.cli.common import Options
from vfljax.errors import UserError


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--known=5"], "--known is of a recorded exchange"),
        (["--wire=a.npz", "--drop=norm"], "--drop is of a stored sweep"),
        (["--wire=", "--workdir=out"], "--wire=.* names no recording"),
        (["--wire=a.npz,", "--workdir=out"], "a.npz is missing"),
    ],
)
def test_flags_of_the_other_kind_are_refused(flags, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = Options(attack.FLAGS)
    options(["attack", *flags])
    with pytest.raises(UserError, match=line):
        attack.run(options)
    assert not [*tmp_path.iterdir()]
