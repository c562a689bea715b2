"""Kill, race and starve a sweep's commands: ``python -m tests.endurance``.

Each part runs launchers as a user does, in processes of their own, on the small sweep of ``damage.py``,
until they end well, and compares the tables with those of a sweep that nothing happened to. Kills are
SIGKILL at random moments of the sweep, the attacks, the report and the verification. The full disk is a
file system in memory of a limited size, which only root can mount. It takes
about 20 minutes on two cores.
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

from tests.damage import CONFIG, IGNORED, Figures, figures

ROOT = pathlib.Path(__file__).parents[1]
PROGRAM = """
from vfljax.config import ordered

def get_config():
    return ordered({config!r})
"""


def command(name: str, workdir: pathlib.Path, config: pathlib.Path | None = None) -> list[str]:
    options = [f"--workdir={workdir}", *([f"--config={config}"] if config else [])]
    return [sys.executable, "-m", f"launch.{name}", *options]


def run(arguments: list[str], seconds: float | None = None) -> tuple[int, str]:
    """Exit status and what was said; SIGKILL after ``seconds``."""
    process = subprocess.Popen(
        arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        text, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        text, _ = process.communicate()
    return process.returncode, text


def error_of(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith("error:")]
    assert "Traceback" not in text, text
    return lines[-1] if lines else ""


def kills(count: int, folder: pathlib.Path, config: pathlib.Path, end: Figures) -> int:
    """Kill at random moments, sweep after sweep; returns how many kills struck."""
    rng, struck, sweeps = random.Random(0), 0, 0
    while struck < count:
        workdir, sweeps = folder / f"killed{sweeps}", sweeps + 1
        took, status = 30.0, -9
        while status:
            began = time.monotonic()
            seconds = rng.uniform(2.0, took) if struck < count else None
            status, text = run(command("sweep", workdir, config), seconds)
            struck += status == -9
            took = min(took, time.monotonic() - began) if status == 0 else took
            if status not in (0, -9):
                raise SystemExit(f"launch.sweep after a kill: {text}")
        for name in ("report", "verify", "attack"):
            if struck < count:
                status, text = run(command(name, workdir), rng.uniform(2.0, 8.0))
                struck += status == -9
                error_of(text)
        assert figures(workdir) == end, f"other figures in {workdir}"
        assert not list(workdir.rglob(".*.tmp")) or run(command("sweep", workdir, config))[0] == 0
        assert not list(workdir.rglob(".*.tmp")), list(workdir.rglob(".*.tmp"))
    print(f"{struck} kills over {sweeps} sweeps: the same tables", flush=True)
    return struck


def races(count: int, folder: pathlib.Path, config: pathlib.Path, end: Figures) -> None:
    """Two writers at once: one is refused and says by whom, or comes when the other is done."""
    refused = 0
    for number in range(count):
        workdir = folder / f"raced{number}"
        both = [
            subprocess.Popen(
                command("sweep", workdir, config),
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for _ in range(2)
        ]
        for process in both:
            text, _ = process.communicate()
            line = error_of(text)
            assert process.returncode in (0, 2), text
            if process.returncode:
                assert "is being written by process" in line, line
                refused += 1
        assert figures(workdir) == end
    print(f"{count} races, {refused} refused: the same tables", flush=True)


@contextlib.contextmanager
def small_disk(place: pathlib.Path, size: int) -> Iterator[None]:
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def full_disks(count: int, folder: pathlib.Path, config: pathlib.Path, end: Figures) -> None:
    """Disks of growing sizes: each ends with one line, and goes on when there is room."""
    needed = sum(p.stat().st_size for p in (folder / "end").rglob("*") if p.is_file())
    lines = set()
    for number in range(count):
        place = folder / f"disk{number}"
        with small_disk(place, 8192 + int(1.3 * needed * number / count)):
            status, text = run(command("sweep", place / "w", config))
            line = error_of(text)
            assert (status, bool(line)) in ((0, False), (2, True)), text
            lines.add(line.replace(str(place), "")[:110])
            left = list((place / "w").rglob(".*.tmp"))
            assert not left, left
            size = "size=1g"
            subprocess.run(["mount", "-o", f"remount,{size}", place], check=True)
            status, text = run(command("sweep", place / "w", config))
            assert status == 0, text
            assert figures(place / "w") == end
    print(f"{count} full disks: the same tables; what was said:", *sorted(lines), sep="\n  ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, count in (("kills", 50), ("races", 10), ("full", 20)):
        parser.add_argument(f"--{name}", type=int, default=count)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        config = folder / "small.py"
        config.write_text(PROGRAM.format(config=CONFIG))
        status, text = run(command("sweep", folder / "end", config))
        assert status == 0, text
        assert all((folder / "end" / name).exists() for name in IGNORED)
        end = figures(folder / "end")
        kills(arguments.kills, folder, config, end)
        races(arguments.races, folder, config, end)
        full_disks(arguments.full, folder, config, end)


if __name__ == "__main__":
    main()
