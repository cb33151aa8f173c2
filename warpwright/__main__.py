"""`python -m warpwright`."""

import sys

from warpwright.cli import main

if __name__ == "__main__":
    sys.exit(main())
