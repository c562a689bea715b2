"""The command ``vfljax report`` from a checkout: see ``python -m launch.report --help``."""

import sys

from vfljax import cli

if __name__ == "__main__":
    cli.start(cli.report, sys.argv[1:], "python -m launch.report")
