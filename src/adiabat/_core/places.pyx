# SPDX-License-Identifier: BSD-3-Clause
"""Places by number: how much room there is, who fills holes, and whose each one is."""

import numpy as np

# Room for one more in so many, and half as much again when it is used up.
SPARE = 8
LEAST = 64


def room_for(Py_ssize_t n, Py_ssize_t before):
    """Room for n, and for some more at once: the first after a fit should not have to wait."""
    return max(n + n // SPARE, before + before // 2, LEAST)


def enlarged(values, Py_ssize_t used, Py_ssize_t n, long long nothing):
    """The array with room for n entries; those beyond the used ones are `nothing`."""
    if n <= len(values):
        return values
    out = np.full(room_for(n, len(values)), nothing, dtype=np.int64)
    out[:used] = values[:used]
    return out


def fillers(const long long[::1] gone, Py_ssize_t n):
    """(tail, hole): which of n survivors from the end fill the places `gone` (ascending)."""
    cdef Py_ssize_t i, k = 0, left = n - gone.shape[0], passed, holes = 0
    for i in range(gone.shape[0]):
        if not (0 <= gone[i] < n and (i == 0 or gone[i - 1] < gone[i])):
            raise IndexError(f"places must ascend from 0 to {n - 1}")
        holes += gone[i] < left
    tail, hole = np.empty(holes, dtype=np.int64), np.empty(holes, dtype=np.int64)
    cdef long long[::1] come = tail, to = hole
    passed = holes  # those of `gone` among the last
    for i in range(left, n):
        if passed < gone.shape[0] and gone[passed] == i:
            passed += 1
        else:
            come[k], to[k] = i, gone[k]
            k += 1
    return tail, hole


def owned(const long long[::1] owner):
    """The places that have an owner, ascending."""
    cdef Py_ssize_t i, k = 0
    out = np.empty(owner.shape[0], dtype=np.int64)
    cdef long long[::1] found = out
    for i in range(owner.shape[0]):
        found[k] = i
        k += owner[i] >= 0
    return out[:k]


def vacant(const long long[::1] owner, Py_ssize_t wanted):
    """The first places without an owner, ascending; fewer than wanted if there are no more."""
    cdef Py_ssize_t i, k = 0
    out = np.empty(wanted, dtype=np.int64)
    cdef long long[::1] found = out
    for i in range(owner.shape[0]):
        if k == wanted:
            break
        if owner[i] < 0:
            found[k] = i
            k += 1
    return out[:k]


def vacant_near(groups, owner, group_of, Py_ssize_t strip):
    """A place for each member of a group, in strips in which no other group has a place.

    `group_of` says whose a strip is, and is written for those taken. None if there is no room.
    """
    places, taken, whose = np.empty(len(groups), dtype=np.int64), owner >= 0, group_of.copy()
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        empty = ~taken.reshape(-1, strip).any(axis=1)
        ours = np.repeat((whose == group) & ~empty, strip) & ~taken
        own = np.flatnonzero(ours)[: len(members)]
        more = np.flatnonzero(empty)
        more = more[: (len(members) - len(own) + strip - 1) // strip]
        if len(own) + strip * len(more) < len(members):
            return None
        whose[more] = group
        new = (more[:, None] * strip + np.arange(strip)).ravel()
        places[members] = np.concatenate([own, new])[: len(members)]
        taken[places[members]] = True
    group_of[:] = whose
    return places


def idle(const long long[::1] owner, const unsigned char[::1] keep, long long[::1] stamp,
         long long now, Py_ssize_t spare):
    """Places whose owners are not to be kept, but for the `spare` latest ones.

    Those kept are stamped as of `now`.
    """
    cdef Py_ssize_t i, k = 0
    out = np.empty(owner.shape[0], dtype=np.int64)
    cdef long long[::1] found = out
    for i in range(owner.shape[0]):
        if owner[i] < 0:
            continue
        if keep[owner[i]]:
            stamp[i] = now
        else:
            found[k] = i
            k += 1
    if k <= spare:
        return out[:0]
    out = out[:k]
    order = np.argsort(np.asarray(stamp)[out], kind="stable")
    return out[order[: k - spare]]


def misplaced(const long long[::1] owner, const unsigned char[::1] keep, Py_ssize_t width,
              Py_ssize_t tolerated, Py_ssize_t most):
    """(free, behind): places of owners to be kept that stand behind the first panels, which could
    hold all of them, and places there that are not kept; `most` of them at most, and none if no
    more than `tolerated` stand behind.
    """
    cdef Py_ssize_t i, used = 0, front, k = 0, free = 0
    out = np.empty((2, owner.shape[0]), dtype=np.int64)
    cdef long long[:, ::1] found = out
    for i in range(owner.shape[0]):
        used += keep[owner[i]] if owner[i] >= 0 else 0
    front = (used + width - 1) // width * width
    for i in range(owner.shape[0]):
        if owner[i] >= 0 and keep[owner[i]]:
            if i >= front:
                found[1, k] = i
                k += 1
        elif i < front:
            found[0, free] = i
            free += 1
    if most == 0 or k <= tolerated:
        return out[0, :0], out[1, :0]
    used = min(k, most)
    return out[0, :used], out[1, k - used:k]
