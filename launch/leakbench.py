"""Enter a defense into LeakBench, or break an entry: see ``python -m launch.leakbench --help``."""

import sys

from analysis.leakbench import command
from vfljax.api.console import start

if __name__ == "__main__":
    start(command.COMMAND, sys.argv[1:], "python -m launch.leakbench")
