"""The command ``vfljax leakbench`` from a checkout: see ``python -m launch.leakbench --help``."""

import sys

from vfljax import cli

if __name__ == "__main__":
    cli.start("leakbench", sys.argv[1:])
