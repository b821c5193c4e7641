# SPDX-License-Identifier: BSD-3-Clause
"""Questions about models that the fitted one is not; none of them changes it."""
