"""The command ``vfljax report`` from a checkout: see ``python -m launch.report --help``."""

import sys

from vfljax import cli

if __name__ == "__main__":
    cli.start("report", sys.argv[1:])
