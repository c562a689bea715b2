"""The papers' tables, their status and pages: see ``python -m launch.reproduce --help``."""

import sys

from analysis.reproduction import command
from vfljax.cli import common

if __name__ == "__main__":
    common.start(command, sys.argv[1:], "python -m launch.reproduce", "vfljax reproduce")
