# SPDX-License-Identifier: BSD-3-Clause
"""The laws that every exact model obeys, and the machinery that puts models to the test.

``streams``   random operations on a model and on plain arrays alike;
``compare``   how far a model is from the independent optimum, or from another model;
``laws``      each law a function of one sentence;
``subjects``  all nine estimators behind the same verbs, each with its exact truth;
``hostile``   the laws where one value is large;
``soak``      thousands of random operations, counted (a script, not a test).
"""
