# SPDX-License-Identifier: BSD-3-Clause
"""Make the golden store of this version; those of released versions are never made again.

python tests/store/make_golden.py FOLDER
"""

import sys

import adiabat
from store_tools import people


def main(folder: str) -> None:
    store = adiabat.create_store(
        folder, "svc", id="name", label="good", categories={"colour": None}, C=5.0, gamma=0.5
    )
    store.learn(people(0, 45))
    store.forget("person-00007", reference="first")
    store.forget("person-00011", reference="second")
    store.revise(people(20, 22))


if __name__ == "__main__":
    main(sys.argv[1])
