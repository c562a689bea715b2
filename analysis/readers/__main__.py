"""Try readers against stored sweeps: see ``python -m analysis.readers --help``."""

import sys

from analysis.readers.command import COMMAND
from vfljax.api.console import start

if __name__ == "__main__":
    start(COMMAND, sys.argv[1:], "python -m analysis.readers")
