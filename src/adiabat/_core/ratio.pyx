# SPDX-License-Identifier: BSD-3-Clause
"""The ratio test of the path: how far to the next breakpoint?

Rows move along u + eta du, r + eta dr, their bounds along lo + eta dlo and hi + eta dhi. The first
of these ends the stretch:

    MARGIN, RESTING    u meets lo or hi                               (CP01 Algorithm 1, KT09 (11))
    LOW, HIGH          r of a row at lo falls to 0, at hi rises to 0   (KT09 (12))
    RISING, FALLING    r of a driven row reaches 0                     (KT09 (13))

Rows LEAVING or PINNED (lo = hi all along) meet nothing.
"""

# The roles a row can have; an ENTERING row is RISING or FALLING, by the side it started on: at a
# tie its r may be 0 before it has moved, and its sign says nothing.
LOW, HIGH, MARGIN, RISING, FALLING, LEAVING, RESTING, PINNED = (
    _LOW, _HIGH, _MARGIN, _RISING, _FALLING, _LEAVING, _RESTING, _PINNED)


cdef inline void consider(Py_ssize_t i, double way, double rate, double pace, double* eta,
                          Py_ssize_t* row, double* best) noexcept nogil:
    # row i meets its condition at way / rate: is it the first? Of equals that of the largest pace.
    if way < 0.0:
        way = 0.0
    if way < eta[0] * rate * (1.0 - 1e-12) or (
            way <= eta[0] * rate * (1.0 + 1e-12) and pace > best[0] and row[0] >= 0):
        if way < eta[0] * rate:
            eta[0] = way / rate
        row[0] = i
        best[0] = pace


cpdef (double, Py_ssize_t) next_breakpoint(
    const long long[::1] rows, const double[::1] dr,
    const double[::1] u, const double[::1] du, const double[::1] r,
    const double[::1] lo, const double[::1] dlo, const double[::1] hi, const double[::1] dhi,
    const unsigned char[::1] role, const double[::1] scale, double calm, double still,
    double limit,
) noexcept nogil:
    """(eta, row): the least eta <= limit at which a row meets its condition; row -1 if none does.

    Only `rows` are looked at; dr[k] is the rate of rows[k]. Rates of u times the scale of their
    row below `calm`, and of r relative to it below `still`, are rounding and meet nothing. Among
    rows that meet it together the one with the largest such rate goes first, which keeps the
    pivots of the margin large.
    """
    cdef Py_ssize_t i, k, row = -1
    cdef double eta = limit, best = 0.0, rate, pace
    for k in range(rows.shape[0]):
        i = rows[k]
        if role[i] == _MARGIN or role[i] == _RESTING:
            rate = du[i] - dhi[i]
            if rate * scale[i] > calm:
                consider(i, hi[i] - u[i], rate, rate * scale[i], &eta, &row, &best)
            rate = dlo[i] - du[i]
            if rate * scale[i] > calm:
                consider(i, u[i] - lo[i], rate, rate * scale[i], &eta, &row, &best)
        elif role[i] == _LOW or role[i] == _FALLING:
            pace = -dr[k] / scale[i]
            if pace > still:
                consider(i, r[i], -dr[k], pace, &eta, &row, &best)
        elif role[i] == _HIGH or role[i] == _RISING:
            pace = dr[k] / scale[i]
            if pace > still:
                consider(i, -r[i], dr[k], pace, &eta, &row, &best)
    return eta, row
