# SPDX-License-Identifier: BSD-3-Clause
"""Speed against refitting with other libraries, and evidence for numerical choices."""
