"""How hard XLA's compiler for CPUs optimizes the programs of a sweep: chosen once, from the plan's estimate.

A program that runs for less time than it compiles is compiled with little effort, and one that runs long with
all. Another level moves figures in their last bits, hence the choice is stored with the sweep: shards, resumes
and jobs elsewhere make the same programs, whether they are compiled or read from the cache.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from vfljax import machine

FLAG = "xla_backend_optimization_level"
# LLVM's -O1: a quarter less to compile, and the quickstart's programs run as fast as with all effort
QUICK = 1
# Estimated seconds of running from which all effort pays, whose compiling takes about a second longer.
PAYS = 60.0


class Effort(NamedTuple):
    """The level of each kind of program; None is all effort, XLA's default."""

    training: int | None = None  # with initial weights and evaluation
    attacks: int | None = None  # with their scores


def level_of(seconds: float) -> int | None:
    """Returns the level of programs that run for so many seconds, by an estimate."""
    return QUICK if seconds < PAYS else None


def stored_effort(header: Mapping[str, Any]) -> Effort:
    """Returns the choice of a stored sweep; of one without any, which was made before there was a choice, all
    effort.

    Args:
      header: of the stored sweep.
    """
    return Effort(**header.get("effort", {}))


def options_of(level: int | None) -> dict[str, Any]:
    """Returns the compiler's options of a level.

    They are empty for all effort, on accelerators, and where ``XLA_FLAGS`` names a level for every program.
    """
    chosen = FLAG in os.environ.get("XLA_FLAGS", "")
    return {} if level is None or chosen or not machine.offered().cpu else {FLAG: level}
