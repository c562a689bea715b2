"""Enter a defense into LeakBench, or break an entry: see ``python -m launch.leakbench --help``."""

import sys

from analysis.leakbench import command
from vfljax import cli

if __name__ == "__main__":
    cli.start(command, sys.argv[1:], "python -m launch.leakbench")
