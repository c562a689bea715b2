"""The command ``vfljax audit`` from a checkout: see ``python -m launch.audit --help``."""

import sys

from vfljax import cli

if __name__ == "__main__":
    cli.start(cli.audit, sys.argv[1:], "python -m launch.audit")
