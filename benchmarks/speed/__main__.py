# SPDX-License-Identifier: BSD-3-Clause
"""`python -m benchmarks.speed`: updates against refits on six problems, then on many kinds."""

import sys

from benchmarks.speed import grid, updates

if __name__ == "__main__":
    quick = [argument for argument in sys.argv[1:] if argument == "--quick"]
    raise SystemExit(updates.main(sys.argv[1:]) or grid.main(quick))
