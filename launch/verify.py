"""The command ``vfljax verify`` from a checkout: see ``python -m launch.verify --help``."""

import sys

from vfljax import cli

if __name__ == "__main__":
    cli.start(cli.verify, sys.argv[1:], "python -m launch.verify")
