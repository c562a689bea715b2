"""Kill, race and starve a sweep's commands: ``python -m tests.endurance``.

Each part runs launchers as a user does, in processes of their own, on the small sweep of ``damage.py``, until
they end well, and compares the tables with those of a sweep that nothing happened to. Kills are SIGKILL at
random moments of the sweep (``kills.py``), the attacks, the report and the verification. The full disk is a
file system in memory of a limited size, which only root can mount. It takes about 20 minutes on two cores.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from tests.damage import CONFIG, IGNORED, figures
from tests.kills import RESTART, ROOT, Run, Whole, killed_sweep, run_until, sweep_command

PROGRAM = """
from vfljax.config import ordered

def get_config():
    return ordered({config!r})
"""


def run(command: list[str], log: pathlib.Path, seconds: float = float("inf")) -> Run:
    """A command that may be killed after ``seconds``, and raises nothing."""
    end = time.monotonic() + seconds
    ended = run_until(command, log, lambda: time.monotonic() >= end)
    assert "Traceback" not in ended.text, ended.text
    return ended


def error_of(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith("error:")]
    return lines[-1] if lines else ""


def kills(count: int, folder: pathlib.Path, config: pathlib.Path, whole: Whole) -> None:
    """Kill at random moments, sweep after sweep, and the commands that read one."""
    rng, struck, sweeps = random.Random(0), 0, 0
    while struck < count:
        workdir, sweeps = folder / f"killed{sweeps}", sweeps + 1
        command, log = sweep_command(str(config), workdir, []), folder / "log"
        struck += len(killed_sweep(command, workdir, whole, count - struck, rng))
        for name in ("report", "verify", "attack"):
            if struck < count:
                reader = [sys.executable, "-m", f"launch.{name}", f"--workdir={workdir}"]
                struck += run(reader, log, rng.uniform(2.0, 8.0)).status is None
        assert figures(workdir) == whole.figures, f"other figures in {workdir}"
        assert not list(workdir.rglob(".*.tmp")) or run(command, log).status == 0
        assert not list(workdir.rglob(".*.tmp")), list(workdir.rglob(".*.tmp"))
    print(f"{struck} kills over {sweeps} sweeps: the same tables", flush=True)


def races(count: int, folder: pathlib.Path, config: pathlib.Path, whole: Whole) -> None:
    """Two copies of a command at once: they divide the work."""
    for number in range(count):
        workdir = folder / f"raced{number}"
        both = [
            subprocess.Popen(
                sweep_command(str(config), workdir, []),
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for _ in range(2)
        ]
        for process in both:
            text, _ = process.communicate()
            assert process.returncode == 0, text
        assert figures(workdir) == whole.figures
    print(f"{count} races: the same tables", flush=True)


@contextlib.contextmanager
def small_disk(place: pathlib.Path, size: int) -> Iterator[None]:
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def full_disks(count: int, folder: pathlib.Path, config: pathlib.Path, whole: Whole) -> None:
    """Disks of growing sizes: each ends with one line, and goes on when there is room."""
    needed = sum(p.stat().st_size for p in (folder / "end").rglob("*") if p.is_file())
    lines = set()
    for number in range(count):
        place, log = folder / f"disk{number}", folder / "log"
        command = sweep_command(str(config), place / "w", [])
        with small_disk(place, 8192 + int(1.3 * needed * number / count)):
            ended = run(command, log)
            line = error_of(ended.text)
            assert (ended.status, bool(line)) in ((0, False), (2, True)), ended.text
            lines.add(line.replace(str(place), "")[:110])
            left = list((place / "w").rglob(".*.tmp"))
            assert not left, left
            subprocess.run(["mount", "-o", "remount,size=1g", place], check=True)
            assert run(command, log).status == 0
            assert figures(place / "w") == whole.figures
    print(f"{count} full disks: the same tables; the errors:", *sorted(lines), sep="\n  ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, count in (("kills", 50), ("races", 10), ("full", 20)):
        parser.add_argument(f"--{name}", type=int, default=count)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        config, end = folder / "small.py", folder / "end"
        config.write_text(PROGRAM.format(config=CONFIG))
        ended = run(sweep_command(str(config), end, []), folder / "log")
        assert ended.status == 0, ended.text
        assert all((end / name).exists() for name in IGNORED)
        whole = Whole(figures(end), ended.seconds, RESTART)
        kills(arguments.kills, folder, config, whole)
        races(arguments.races, folder, config, whole)
        full_disks(arguments.full, folder, config, whole)


if __name__ == "__main__":
    main()
