# SPDX-License-Identifier: BSD-3-Clause
"""What Hypothesis draws: edits of sound inputs, as plain JSON, so that each can be kept in a file.

An edit names a place by a number, taken modulo the number of places: whatever the input has there.
"""

from hypothesis import strategies as st

MODELS = (
    "svc", "svc three", "svc linear", "svr", "one class", "svdd", "lssvc", "lssvr", "lssvr poly",
    "kernel lssvc", "kernel lssvr", "pipeline", "svc poly", "svc chi2", "svc precomputed",
    "svc window", "svc calibrated", "table", "table held", "lssvc scaled",
    "lssvr table",
)  # fmt: skip
SPARSE = {"svc", "svc three", "svr", "one class", "svdd", "kernel lssvc", "kernel lssvr"}
STORES = ("svc", "lssvc", "sparse", "scaled", "signed")

places = st.integers(0, 2**16)
numbers = st.one_of(
    st.integers(-3, 60),
    st.sampled_from([2**31 - 1, 2**31, -(2**31), 2**40, 10**9, 2**53, 2**63 - 1, -(2**63), 10**30]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1e-300, 1e300, 1e-12, 5e-324, -1.0, 0.5]),
)
words = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["rbf", "poly", "linear", "precomputed", "SVC", "LSSVC", "c_svc", "scale", "X"]
    ),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, words),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)

#: Edits of JSON: another value in a place, a place that is gone, two places exchanged.
of_json = st.one_of(
    st.tuples(st.just("set"), places, values),
    st.tuples(st.just("set"), places, numbers),
    st.tuples(st.just("drop"), places),
    st.tuples(st.just("swap"), places, places),
)
_KINDS = ["<i8", "<i4", "<u4", "<f8", "<f4", "|b1", "<U3", "|S2"]
#: Edits of arrays: an entry, the length, the shape, the type, or all of it.
of_arrays = st.one_of(
    st.tuples(st.just("entry"), places, places, numbers),
    st.tuples(st.just("cut"), places, st.integers(0, 80)),
    st.tuples(st.just("repeat"), places, st.integers(2, 4)),
    st.tuples(st.just("scale"), places, numbers),
    st.tuples(st.just("shift"), places, numbers),
    st.tuples(st.just("table"), places, st.booleans()),
    st.tuples(st.just("cast"), places, st.sampled_from(_KINDS)),
    st.tuples(st.just("fill"), places, numbers),
    st.tuples(st.just("reverse"), places),
    st.tuples(st.just("exchange"), places, places),
)
of_models = st.one_of(st.tuples(st.just("json"), of_json), st.tuples(st.just("array"), of_arrays))
#: Edits of bytes: another byte, a cut, bytes put in, a part repeated.
of_bytes = st.one_of(
    st.tuples(st.just("byte"), st.integers(0, 2**20), st.integers(0, 255)),
    st.tuples(st.just("cut"), st.integers(0, 2**20)),
    st.tuples(st.just("insert"), st.integers(0, 2**20), st.binary(max_size=12).map(bytes.hex)),
    st.tuples(st.just("repeat"), st.integers(0, 2**20), st.integers(1, 64)),
)

model_files = st.fixed_dictionaries(
    {
        "model": st.sampled_from(MODELS),
        "sparse": st.booleans(),
        "edits": st.lists(of_models, min_size=1, max_size=4),
        "bytes": st.lists(of_bytes, max_size=1) | st.just([]),
    }
)
csr_arrays = st.fixed_dictionaries(
    {
        "format": st.sampled_from(["csr", "csr", "csr", "csc", "coo", "bsr"]),
        "edits": st.lists(of_arrays, min_size=1, max_size=3),
        "shape": st.none() | st.tuples(st.integers(-1, 60), st.integers(-1, 2**31)),
    }
)
_CSV = ["name,income,age,colour,good\n", "person-00099,", "1.5,", "2,", "red,", "yes\n", "\n", ",",
        '"', "'", ";", "\t", "=1+1", "nan", "inf", "-", "1e400", "\ufeff", "\x00", "é", "\r\n",
        "0x10", "1_000", "name", "id", " ", "9" * 400]  # fmt: skip
_SVM = ["1 ", "0 ", "1:", "2:0.5 ", "# a\n", "# b\n", "\n", "-1:3", "0:1 ", "999999999999:1 ", "#",
        ":", "qid:1 ", "nan", "1e999", "2147483647:1 ", "3:1 2:1 ", "\r", "\x00"]  # fmt: skip
tables = st.one_of(
    st.fixed_dictionaries(
        {"name": st.just("rows.csv"), "text": st.lists(st.sampled_from(_CSV), max_size=30)}
    ),
    st.fixed_dictionaries(
        {"name": st.just("rows.svmlight"), "text": st.lists(st.sampled_from(_SVM), max_size=30)}
    ),
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(
                ["good.csv", "good.tsv", "good.csv.gz", "good.parquet", "good.feather",
                 "good.svmlight"]
            ),
            "edits": st.lists(of_bytes, min_size=1, max_size=4),
        }
    ),
)  # fmt: skip
#: Edits of a store, after which every digest is made to fit again.
of_stores = st.one_of(
    st.tuples(st.just("settings"), of_json),
    st.tuples(st.just("entry"), places, of_json),
    st.tuples(st.just("model"), of_models),
    st.tuples(st.just("features"), places, of_bytes),
    st.tuples(st.just("label"), places, values),
    st.tuples(st.just("weight"), places, numbers),
    st.tuples(st.just("name"), places, words),
    st.tuples(st.just("state"), places, st.one_of(numbers, words)),
)
stores = st.one_of(
    st.fixed_dictionaries(
        {"store": st.sampled_from(STORES), "edits": st.lists(of_stores, min_size=1, max_size=3)}
    ),
    st.fixed_dictionaries(
        {"store": st.sampled_from(STORES), "bytes": st.lists(of_bytes, min_size=1, max_size=3)}
    ),
)

TARGETS = {"model": model_files, "csr": csr_arrays, "table": tables, "store": stores}
