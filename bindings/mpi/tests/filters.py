"""Histograms, rank classes, outliers and values of ranks against what each rank wrote by itself.

As truth.py, from the ranks' own files and without any of Sapwood's code: the three-phase histogram
bin by bin, the one-phase sketch within its own bins, the classes of four schemes with their ranks
and statistics, the ranks furthest from the median with their scores, and the numbers of the heat
map. All of this at fan-out 1, 2 and 8, where the classes must have the same numbers.
"""

import math
import re
import unittest
from fractions import Fraction
from statistics import median_low

import turns
import watched
from truth import ROUNDING, TREES, events_of, ranks_of, statistics
from watched import LAUNCHERS, OneMpi, Watched, test_program

METRICS = {"calls": 0, "time_ns": 1, "bytes": 2}
EXPRESSION = "^(solve/halo|MPI_Send)$"
# Which names decide, and what of them counts.
SCHEMES = {
    "all": lambda name, is_region: name,
    "mpi": lambda name, is_region: None if is_region else name,
    "depth:1": lambda name, is_region: name.split("/")[0] if is_region else None,
    f"regex:{EXPRESSION}": lambda name, is_region: name if re.search(EXPRESSION, name) else None,
}
OUTLIERS = 2
OPTIONS = ["--histogram", "auto", "--histogram", "solve/norm:time_ns,bins=7", "--histogram", "MPI_Allreduce:bytes",
           "--outliers", str(OUTLIERS), *[word for scheme in SCHEMES for word in ("--classes", scheme)]]


class Filters(OneMpi):
    """The comparison; the tests are of one MPI each."""

    ranks = 8

    def setUp(self):
        self.maxDiff = None

    def test_roles(self):
        ids = set()
        for fan_out, tree in TREES.items():
            with self.subTest(fan_out=fan_out):
                command = [*LAUNCHERS[self.abi], str(self.ranks), test_program(self.abi, "roles")]
                run = Watched(command, *tree, "--interval", "50ms", "--quiet", *OPTIONS)
                self.assertEqual((run.code, sorted(run.dumps)), (0, list(range(self.ranks))), run.errors)
                self.assertEqual(run.profile["analysis_missing"], {})
                self.events = {rank: events_of(dump) for rank, dump in sorted(run.dumps.items())}
                self.check_histograms(run.profile)
                ids.add(self.check_classes(run.profile))
                self.check_outliers(run.profile, run.dumps)
                self.check_rank_values(run.profile, run.dumps)
        self.assertEqual(len(ids), 1, "classes have other numbers in another tree")

    def values(self, event, size_class, metric, ranks=None):
        """By rank, of the ranks that have the event."""
        found = {}
        for rank in ranks or self.events:
            for (name, size, _), counters in self.events[rank].items():
                if (name, size) == (event, size_class):
                    found[rank] = counters[METRICS[metric]]
        return found

    def check_histograms(self, profile):
        histograms, methods = profile["histograms"], {"three-phase": set(), "sketch": set()}
        self.assertEqual(profile["histograms_left_out"], 0)
        for histogram in histograms:
            key = (histogram["event"], histogram["communicator_size_class"], histogram["metric"])
            methods[histogram["method"]].add(key)
            self.check_histogram(histogram)
        self.assertEqual(methods["three-phase"], methods["sketch"])
        self.assertIn(("solve/norm", None, "time_ns"), methods["sketch"])
        self.assertIn("MPI_Allreduce", {event for event, _, metric in methods["sketch"] if metric == "bytes"})
        # Beside those two the heaviest events, of which there are four at least.
        self.assertGreaterEqual(len(methods["sketch"]), 5)

    def check_histogram(self, histogram, ranks=None):
        key = (histogram["event"], histogram["communicator_size_class"], histogram["metric"])
        values = list(self.values(*key, ranks).values())
        bins = histogram["bins"]["counts"]
        low, high = Fraction(histogram["bins"]["low"]), Fraction(histogram["bins"]["high"])
        self.assertEqual((histogram["under"], histogram["over"]), (0, 0))
        expected = [0] * len(bins)
        for value in values:
            place = (value - low) * len(bins) // (high - low) if high > low else len(bins) - 1
            expected[min(place, len(bins) - 1)] += 1
        self.assertEqual(bins, expected, histogram)
        if histogram["method"] == "three-phase":
            self.assertEqual((low, high), (min(values), max(values)), histogram)
            self.assertEqual(len(bins), {"solve/norm": 7}.get(histogram["event"], 20), histogram)
        else:
            width = (high - low) / len(bins)
            self.assertEqual((math.frexp(width)[0], low % width), (0.5, 0), histogram)
            self.assertTrue(low <= min(values) and max(values) < high, histogram)

    def check_classes(self, profile):
        ids = []
        self.assertEqual({section["scheme"] for section in profile["classifications"]}, set(SCHEMES))
        for section in profile["classifications"]:
            choose, expected = SCHEMES[section["scheme"]], {}
            for rank, events in self.events.items():
                names = {choose(name, is_region) for name, _, is_region in events} - {None}
                expected.setdefault(tuple(sorted(names)), []).append(rank)
            came = {tuple(one["names"]): ranks_of(one["ranks"]) for one in section["classes"]}
            self.assertEqual(came, expected, section["scheme"])
            self.assertEqual((section["left_out"], section["left_out_ranks"]), (0, ""))
            sizes = [one["size"] for one in section["classes"]]
            self.assertEqual(sizes, sorted(sizes, reverse=True))
            self.assertGreater(section["reduction_factor"], 0)
            for one in section["classes"]:
                ids.append((section["scheme"], one["id"], tuple(one["names"])))
                self.check_class(one)
        return tuple(sorted(ids))

    def check_class(self, one):
        ranks = ranks_of(one["ranks"])
        names = {(name, size) for rank in ranks for name, size, _ in self.events[rank]}
        self.assertEqual({(event["name"], event["communicator_size_class"]) for event in one["events"]}, names)
        for event in one["events"]:
            for metric in METRICS:
                values = self.values(event["name"], event["communicator_size_class"], metric, ranks)
                for name in ("sum", "min", "min_rank", "max", "max_rank"):
                    self.assertEqual(event[metric][name], statistics(values)[name], (one, metric))
        self.assertTrue(one["histograms"])
        for histogram in one["histograms"]:
            self.check_histogram(histogram, ranks)

    def check_outliers(self, profile, dumps):
        named = {}
        for outlier in profile["outliers"]:
            key = (outlier["event"], outlier["communicator_size_class"], outlier["metric"])
            named.setdefault(key, []).append(outlier)
        asked = {(one["event"], one["communicator_size_class"], one["metric"]) for one in profile["histograms"]}
        for key in asked:
            values = self.values(*key)
            middle = median_low(values.values())
            distances = [abs(value - middle) for value in values.values()]
            scale = 1.4826 * median_low(distances) or 1.2533 * sum(distances) / len(distances)
            far = sorted(values, key=lambda rank: (-abs(values[rank] - middle), rank))[:OUTLIERS]
            far = [rank for rank in far if values[rank] != middle] if scale else []
            came = named.pop(key, [])
            self.check_hosts(values, [outlier for outlier in came if outlier["rank"] is None], dumps)
            came = [outlier for outlier in came if outlier["rank"] is not None]
            self.assertEqual([outlier["rank"] for outlier in came], far, (key, values))
            for outlier in came:
                value = values[outlier["rank"]]
                self.assertEqual((outlier["value"], outlier["median"]), (value, middle))
                self.assertEqual(outlier["host"], dumps[outlier["rank"]].host)
                self.assertTrue(math.isclose(outlier["score"], (value - middle) / scale, rel_tol=ROUNDING), outlier)
        self.assertEqual(named, {})
        # Times of hosts are never all the same.
        has_hosts = any(outlier["rank"] is None for outlier in profile["outliers"])
        self.assertEqual(has_hosts, len({dump.host for dump in dumps.values()}) > 2)

    def check_hosts(self, values, came, dumps):
        """Hosts are compared with each other by the means of their ranks, where there are three or more."""
        by_host = {}
        for rank, value in values.items():
            by_host.setdefault(dumps[rank].host, []).append(value)
        means = {host: sum(found) / len(found) for host, found in by_host.items()}
        middle = median_low(means.values())
        distances = [abs(mean - middle) for mean in means.values()]
        scale = 1.4826 * median_low(distances) or 1.2533 * sum(distances) / len(distances)
        far = sorted(means, key=lambda host: (-abs(means[host] - middle), host))[:OUTLIERS]
        far = [host for host in far if means[host] != middle] if scale and len(means) > 2 else []
        self.assertEqual([outlier["host"] for outlier in came], far, means)
        for outlier in came:
            value = means[outlier["host"]]
            self.assertEqual((outlier["value"], outlier["median"]), (value, middle))
            self.assertTrue(math.isclose(outlier["score"], (value - middle) / scale, rel_tol=ROUNDING), outlier)

    def check_rank_values(self, profile, dumps):
        came = {section["metric"]: section for section in profile["rank_values"]}
        for rank, dump in dumps.items():
            wall = dump.ended_ns - dump.started_ns
            calls = sum(time for key, time in dump.times.items()
                        if isinstance(key, tuple) and key[0] not in ("MPI_Init", "MPI_Init_thread"))
            mpi = min(calls, wall)
            moved = sum(counters[2] for counters in self.events[rank].values())
            for metric, value in (("mpi_ppm", mpi * 10**6 // wall), ("compute_ns", wall - mpi), ("bytes", moved)):
                section = came[metric]
                self.assertEqual(section["ranks_per_bin"], 1)
                self.assertEqual((section["mean"][rank], section["max"][rank]), (value, value), (metric, rank))


class OpenMpi(Filters, unittest.TestCase):
    abi = "openmpi"


class Mpich(Filters, unittest.TestCase):
    abi = "mpich"
    # MPICH's ranks spin while they wait: more of them than processors hardly move.
    ranks = 4


load_tests = turns.load_tests

if __name__ == "__main__":
    watched.sapwood(), watched.library_folder()
    unittest.main()
