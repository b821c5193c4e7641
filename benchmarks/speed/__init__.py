# SPDX-License-Identifier: BSD-3-Clause
"""Speed, as ratios to refitting in the same run."""
