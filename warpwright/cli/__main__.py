"""`python -m warpwright.cli`."""

import sys

from warpwright.cli import main

if __name__ == "__main__":
    sys.exit(main())
