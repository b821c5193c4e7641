# SPDX-License-Identifier: BSD-3-Clause
"""`python -m benchmarks.speed`: the comparison of updates with refits."""

from benchmarks.speed.updates import main

if __name__ == "__main__":
    raise SystemExit(main())
