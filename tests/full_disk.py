"""Runs the small sweep of ``tests.kills`` on disks of growing sizes: ``python -m tests.full_disk``.

A disk is a file system in memory, which only root can mount. On each, the command must end well, or with one
line and status 2 and without half-written files. Once there is room, the same command must end in the tables of
a sweep that had room from the start.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from tests.kills import bits, config_file, figures, start, wait


@contextlib.contextmanager
def disk(place: pathlib.Path, size: int) -> Iterator[None]:
    """Mounts a disk of so many bytes."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        flags, whole = [f"--config={config_file(folder)}"], folder / "whole"
        assert wait(start(whole, flags)) == 0
        needed = sum(path.stat().st_size for path in whole.rglob("*") if path.is_file())
        for number in range(given.trials):
            place = folder / f"disk{number}"
            workdir, said = place / "w", folder / f"{number}.log"
            with disk(place, 16384 + int(1.2 * needed * number / given.trials)):
                status = wait(start(workdir, flags, said))
                lines = [line for line in said.read_text().splitlines() if "error" in line]
                assert (status, len(lines)) in ((0, 0), (2, 1)), said.read_text()
                assert not list(workdir.rglob(".*.tmp"))
                print(f"disk {number}: {lines[0][:200] if lines else 'enough'}", flush=True)
                subprocess.run(["mount", "-o", "remount,size=1g", place], check=True)
                assert wait(start(workdir, flags, said)) == 0, said.read_text()
                assert bits(figures(workdir)) == bits(figures(whole))
    return 0


if __name__ == "__main__":
    sys.exit(main())
