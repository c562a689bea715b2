"""Runs attacks until a share of an audit's budget is spent."""

from __future__ import annotations

import pathlib
import time

from vfljax import store
from vfljax.launching.work import May
from vfljax.store.units import ATTACK

# share of the budget after which only ``ALWAYS`` attacks are begun on the undefended federation
SHARE = 0.3
ALWAYS = ("reader", "probe")
"""The attacks that read the most in the stored audits, which are run at any time."""


def until(end: float, workdir: pathlib.Path, left_out: set[str]) -> May:
    """Returns whether a unit may be begun: attacks until a moment, and all else always.

    An attack that has begun, now or earlier (rows of it are stored), is finished.

    Args:
      end: the moment, by ``time.monotonic``; ``ALWAYS`` are run at any time.
      workdir: the folder of the sweep.
      left_out: names of attacks that are not run; attacks that are not begun in time are added.
    """
    begun: set[str] = set()

    def may(unit: store.Unit) -> bool:
        if unit.kind != ATTACK:
            return True
        name = store.read_header(workdir)["attacks"][unit.of]["attack"]
        stored = any((workdir / part / ATTACK / unit.of).is_dir() for part in (".", "partial"))
        if name not in begun and not stored and name not in ALWAYS and time.monotonic() >= end:
            left_out.add(name)
        elif name not in left_out and stored:
            begun.add(name)
        return name not in left_out

    return may
