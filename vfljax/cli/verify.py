"""Check every file of a sweep by its checksum: what is sound, what is damaged, what a rerun will redo.

    vfljax verify --workdir=runs/quickstart

Nothing is changed. The exit status is 0 where everything that is there is sound, and 2 where something
is damaged; `vfljax sweep --workdir=DIR --mend` then sets that aside and makes it again.
"""

from __future__ import annotations

from vfljax.cli.common import Flag, Options

RESUMES = False
FLAGS = (Flag("workdir", "folder of a sweep", path=True),)


def run(options: Options) -> None:
    """Print the state of every part of a sweep, and of the one that selected Delta."""
    from vfljax.launching import running

    running.verify(options.folder)
