# SPDX-License-Identifier: BSD-3-Clause
"""Which cases of a large product are run today; the marker `rotates(parts)` asks for it."""


def name_of(item):
    """A test without its case."""
    return item.nodeid.partition("[")[0]


def whose_turn_it_is(items, turn):
    """All cases but those that are left to another day, by identity.

    The places of a case's parameters in their lists are added up, so that with `rotates(2)` a law
    meets every family each day, and by each of two solvers every other family.
    """
    places, kept = {}, set()
    for item in items:
        marker = item.get_closest_marker("rotates")
        if marker is not None:
            total = turn
            for name, value in item.callspec.params.items():
                known = places.setdefault((name_of(item), name), {})
                total += known.setdefault(id(value), len(known))
            if total % marker.args[0] != 0:
                continue
        kept.add(id(item))
    return kept
