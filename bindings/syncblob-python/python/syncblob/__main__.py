"""The command ``syncblob``, also as ``python -m syncblob``."""

import signal
import sys

from ._syncblob import run_command


def main() -> int:
    """Runs the command with the arguments of the process; gives the exit status."""
    # The command looks for no signal of Python's: one ends it, as it ends other programs.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command(["syncblob", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
