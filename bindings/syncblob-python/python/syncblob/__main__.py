"""Runs the command ``syncblob``, also as ``python -m syncblob``."""

import signal
import sys

from ._syncblob import run_command


def main() -> int:
    """Runs the command with the process's arguments. Returns the exit status."""
    # Restore the default action of Ctrl-C, which ends the process. Python's handler would run only
    # after the command.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command(["syncblob", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
