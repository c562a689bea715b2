"""What `vfljax attack` is asked of a stored sweep, and what of a recorded exchange."""

import pytest


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--known=5"], "--known is of a recorded exchange"),
        (["--wire=a.npz", "--drop=norm"], "--drop is of a stored sweep"),
        (["--drop=norm", "--attacks=mean", "--workdir=out"], "leave --attacks out"),
        (["--wire=", "--workdir=out"], "--wire=() names no recording"),
        (["--wire=a.npz,", "--workdir=out"], "a.npz is missing"),
        (["--wire=a.npz", "--workdir=out", "--known=-1"], "--known=-1"),
        (["--wire=a.npz", "--workdir=out", "--utility=high"], "--utility='high'"),
        (["--wire=a.npz", "--workdir=out", "--after_utility=0.5"], "give --after"),
        (["--workdir=out", "--jobs=2"], "out holds no sweep"),
    ],
)
def test_what_cannot_be_attacked_is_one_line(refused, flags, line):
    assert line in refused("attack", *flags)
