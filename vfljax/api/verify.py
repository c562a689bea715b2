"""``vfljax verify``: the check of a sweep's files."""

from __future__ import annotations

import pathlib

from vfljax.api.arguments import Path, checked


@checked
def verify(workdir: Path) -> None:
    """Check every file of a sweep by its checksum: what is sound, what is damaged, what a rerun will redo.

        vfljax verify --workdir=runs/quickstart

    Nothing is changed. The exit status is 0 where everything that is there is sound, and 2 where something
    is damaged; `vfljax sweep --workdir=DIR --mend` then sets that aside and makes it again.

    Args:
      workdir: the folder of a sweep.

    Raises:
      UserError: if a part is damaged.
    """
    from vfljax.launching import running

    running.verify(pathlib.Path(workdir))
