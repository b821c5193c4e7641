# SPDX-License-Identifier: BSD-3-Clause
"""Figures for Prometheus: requests by route, and how each model stands."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from adiabat.service.desk import Desk

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)


class Metrics:
    """The figures of one service."""

    def __init__(self, desk: Desk) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "adiabat_requests", "Requests answered.", ("method", "route", "status"),
            registry=self.registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "adiabat_request_seconds", "Time to answer.", ("route",), buckets=_BUCKETS,
            registry=self.registry,
        )  # fmt: skip
        self._changes = Counter(
            "adiabat_changes", "Changes carried out.", ("model", "operation"),
            registry=self.registry,
        )  # fmt: skip
        self.registry.register(_Models(desk))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def changed(self, model: str, operation: str) -> None:
        """Count a change."""
        self._changes.labels(model, operation).inc()

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self.registry)


class _Models(Collector):
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def collect(self) -> Iterable[Metric]:
        entries = GaugeMetricFamily(
            "adiabat_log_entries", "Entries of the log that predictions are of.", labels=["model"]
        )
        waiting = GaugeMetricFamily("adiabat_queue", "Changes waiting.", labels=["model"])
        sound = GaugeMetricFamily("adiabat_readable", "1 if the store can be read.",
                                  labels=["model"])  # fmt: skip
        for name, model in self._desk.models.items():
            entries.add_metric([name], model.predictor.entry)
            waiting.add_metric([name], model.waiting)
            sound.add_metric([name], float(model.damage is None))
        jobs = GaugeMetricFamily("adiabat_jobs", "Jobs that are not finished.")
        jobs.add_metric([], self._desk.jobs.waiting())
        return [entries, waiting, sound, jobs]
