"""Compares which ranks waited for which, as it came through the tree, with what each rank wrote by itself.

Every rank writes its events to disk, and the program notes by its own clock when it entered and
left each call. The events must lie inside of these notes and carry their numbers. From the events
of all ranks waits are computed here, without any of Sapwood's code, and must be those in
profile.json: numbers of calls exactly, times to what the calibrations of two ranks' clocks differ
by. All of this at fan-out 1, 2 and 8, with ranks that come late, that die, and rings that overflow.

Needs the environment that watched.py names; `make truth` sets it.
"""

import contextlib
import os
import re
import signal
import struct
import subprocess
import tempfile
import unittest
from collections import defaultdict

import prerequisites
import turns
import watched
from paced import Paced
from rank_events import COLLECTIVE, COMPLETED, RECEIVE, RECEIVE_COMPLETED, SEND, SEND_STARTED, STARTED, Waits
from recorded import RecordedRun
from truth import TREES
from watched import (LAUNCHERS, OneMpi, Watched, preloaded, sapwood, test_program, wait_until, whole_lines,
                     words_until)
from why import WhyRun, until_stuck

# Two calibrations over at least 2 ms differ by less than this part.
CALIBRATION = 1e-3
# One calibration and the clock of the notes differ by less; by more than 0.1 % was seen on a busy virtual machine.
RATE = 5e-3
# A note is taken beside the call: between the two clocks nothing else is off by more, in nanoseconds.
NOTE_NS = 20_000
# The clocks of two hosts are aligned better than this, in nanoseconds, also on a busy machine.
CLOCK_ERROR_MAX = 1_000_000
# How often a program is run at most until no rank of it was held up where it matters.
RUNS_MAX = 4
# The communicators of waits.c to which the last rank is late, of those that come and go.
LATE_COPIES = {f"copy-{step}" for step in range(49, 1000, 50)}
# Flags of a space in the event file (shim/events.h).
SPACE_WINDOW, SPACE_NUMBER_LOST = 2, 4


def rank_of(data):
    """The rank that has written an event file."""
    return struct.unpack_from("<I", data, 16)[0]


class WaitsRun(RecordedRun):
    """A run with --waits that also has `files` and `notes` by rank."""

    def __init__(self, abi, ranks, case, *options, environment=None, waits=True, interval="100ms"):
        super().__init__([*LAUNCHERS[abi], str(ranks), test_program(abi, "waits"), case, "notes"],
                         *(["--waits"] if waits else []), "--interval", interval, "--quiet", *options,
                         environment=environment)

    def read_rows(self):
        # Before the folder is gone.
        self.notes = {}
        for name in os.listdir(self.folder):
            if found := re.fullmatch(r"notes\.(\d+)", name):
                with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                    self.notes[int(found[1])] = [line.split() for line in file]
        with open(os.path.join(self.out, "report.txt"), encoding="utf-8") as file:
            self.text = file.read()
        return super().read_rows()


class WaitsTruth(OneMpi):
    """The comparison, for one MPI."""

    ranks = 4
    trees = TREES

    def run_case(self, case, *options, ranks=None, **more):
        run = WaitsRun(self.abi, ranks or self.ranks, case, *options, **more)
        self.assertEqual(run.code, 0, run.errors)
        self.assertEqual(sorted(run.files), list(range(ranks or self.ranks)), run.errors)
        return run

    def compare(self, case, ranks=None, **more):
        """The runs of a case at each fan-out."""
        runs = []
        for fan_out, tree in self.trees.items():
            run = self.run_case(case, *tree, ranks=ranks, **more)
            with self.subTest(case=case, fan_out=fan_out):
                self.check_notes(run)
                self.check_figures(run)
                waits = run.profile["waits"]
                self.assertEqual((waits["incomplete"], waits["unmatched_receives"], waits["dropped"]), (0, 0, 0))
            runs.append(run)
        return runs

    def check_notes(self, run):
        """Each noted call is one event, with its number and inside of the note."""
        identities = defaultdict(set)
        for rank, notes in run.notes.items():
            file = run.files[rank]
            self.check_each(file, [note for note in notes if note[0] == "collective"], COLLECTIVE, identities)
            sends = [event for event in file.events if event.kind in (SEND, SEND_STARTED)]
            receives = [event for event in file.events if event.kind in (RECEIVE, RECEIVE_COMPLETED)]
            self.check_messages(file, [note for note in notes if note[0] == "send"], sends)
            self.check_messages(file, [note for note in notes if note[0] == "receive"], receives)
            started = [note for note in notes if note[0] == "started"]
            begun = [event for event in file.events if event.kind == STARTED]
            done = [event for event in file.events if event.kind == COMPLETED]
            self.assertEqual((len(begun), len(done)), (len(started), len(started)))
            for note, first, last in zip(started, begun, done):
                self.assertEqual((last.function, first.sequence, last.sequence), (note[1], int(note[3]), int(note[3])))
                self.inside(file, first, int(note[4]), int(note[5]))
                self.inside(file, last, int(note[5]), int(note[6]))
        self.assertTrue(all(len(numbers) == 1 for numbers in identities.values()), identities)
        self.assertEqual(len(set().union(*identities.values())), len(identities), identities)

    def check_each(self, file, notes, kind, identities):
        events = [event for event in file.events if event.kind == kind]
        # Of rings that have overflowed the last ones are there.
        events = events[len(events) - len(notes):]
        self.assertEqual(len(events), len(notes))
        for note, event in zip(notes, events):
            _, name, communicator, number, root, begin, end = note
            self.assertEqual((event.function, event.sequence), (name, int(number)), note)
            if int(root) >= 0:
                self.assertEqual(event.peer, int(root), note)
            self.inside(file, event, int(begin), int(end))
            identities[communicator].add(event.space.identity)

    def check_messages(self, file, notes, events):
        self.assertEqual(len(events), len(notes))
        expected = sorted((int(note[2]), int(note[3]), int(note[4])) for note in notes)
        self.assertEqual(sorted((event.peer, event.tag, event.sequence) for event in events), expected)
        by_message = {(event.peer, event.tag, event.sequence): event for event in events}
        for note in notes:
            event = by_message[tuple(map(int, note[2:5]))]
            self.assertEqual(event.function, note[1], note)
            self.inside(file, event, int(note[-2]), int(note[-1]))

    def inside(self, file, event, begin, end):
        """The event lies in the time between two looks at the clock."""
        first, last = file.in_ns(event.time), file.in_ns(event.time + event.span)
        slack = NOTE_NS + (end - file.ns) * RATE
        self.assertLessEqual(begin - slack, first, event)
        self.assertLessEqual(last, end + slack, event)

    def check_figures(self, run, lost=()):
        expected = Waits([file for rank, file in run.files.items() if rank not in lost])
        waits = run.profile["waits"]
        scale = run.files[0].scale / 2**32
        slack = expected.slack * scale
        self.assertEqual((waits["collectives"], waits["mixed"]), (expected.collectives, 0))
        self.assertEqual(waits["incomplete"], expected.incomplete)
        by_event = defaultdict(dict)
        for (rank, event), (calls, ticks) in expected.waited.items():
            by_event[event][rank] = (calls, ticks * scale)
        came = {(event["name"], event["communicator_size_class"]): event["wait_ns"] for event in run.profile["events"]
                if event["wait_ns"] is not None}
        self.assertEqual(set(came), set(by_event))
        if watched.ON_HOSTS:
            self.check_bounds(waits, expected, by_event, came)
            return expected
        self.assertEqual(waits["undecided"], 0)
        for event, by_rank in by_event.items():
            one = came[event]
            calls = sum(calls for calls, _ in by_rank.values())
            self.assertEqual((one["calls"], one["ranks"], one["undecided"], one["error"]), (calls, len(by_rank), 0, 0), event)
            self.near(one["sum"], sum(ns for _, ns in by_rank.values()), calls, event, slack)
            self.near(one["max"], max(ns for _, ns in by_rank.values()), calls, event, slack)
            self.near(one["mean"], sum(ns for _, ns in by_rank.values()) / len(by_rank), calls, event, slack)
            self.near(by_rank[one["max_rank"]][1], one["max"], calls, event, slack)
        ranks = {one["rank"]: one for one in waits["ranks"]}
        total = {rank: sum(ticks for (of, _), (_, ticks) in expected.waited.items() if of == rank) for rank in ranks}
        for rank, one in ranks.items():
            last, made, sends, send_ns, receives, receive_ns = expected.made.get(rank, [0] * 6)
            numbers = (one["times_last"], one["late_sends"], one["late_receives"])
            for counted, expects, ties in zip(numbers, (last, sends, receives), expected.ties[rank]):
                self.assertLessEqual(abs(counted - expects), ties, (rank, numbers, (last, sends, receives)))
            for came_ns, ticks in ((one["made_wait_ns"], made), (one["late_send_ns"], send_ns),
                                   (one["late_receive_ns"], receive_ns), (one["wait_ns"], total[rank])):
                self.near(came_ns, ticks * scale, sum(calls for calls, _ in expected.waited.values()), rank, slack)
        return expected

    def check_bounds(self, waits, expected, by_event, came):
        """Between hosts figures are right within the error that is given with them, and no rank is said to have come
        last that did not. The hosts of the test bed have one clock, which the ranks' files are read by."""
        for event, by_rank in by_event.items():
            one = came[event]
            calls, wanted = (sum(pair) for pair in zip(*by_rank.values()))
            self.assertEqual((one["calls"] + one["undecided"], one["ranks"]), (calls, len(by_rank)), event)
            off = wanted * CALIBRATION + 2 * calls + one["error"]
            self.assertLessEqual(one["sum"], wanted + off, event)
            # What is undecided lies within the clocks' errors.
            self.assertGreaterEqual(one["sum"], wanted - off - one["undecided"] * CLOCK_ERROR_MAX, event)
        told = {one["rank"]: one["times_last"] for one in waits["ranks"]}
        missed = 0
        for rank, times in told.items():
            late, ties = expected.made.get(rank, [0])[0], expected.ties[rank][0]
            self.assertLessEqual(times, late + ties, rank)
            missed += max(0, late - ties - times)
        self.assertLessEqual(missed, waits["undecided"])
        # Ranks come milliseconds apart to most kinds of collectives, and the clocks are known far better. To others
        # they come at once, to more of them where ranks find no processor; of a few collectives the share says little.
        if expected.collectives >= 100:
            close = expected.collectives_within(CLOCK_ERROR_MAX)
            self.assertLess(waits["undecided"], max(expected.collectives * 3 // 4, close + 1))
        self.assertLessEqual(sum(told.values()), expected.collectives - waits["undecided"])

    def near(self, came, expected, calls, what, slack):
        """Equal but for the calibrations of clocks, and for what hangs on one nanosecond."""
        off = expected * CALIBRATION + 2 * calls + slack
        self.assertLessEqual(abs(came - expected), off, (what, came, expected))

    def culprits(self, run):
        return [one["rank"] for one in run.profile["waits"]["culprits"]]

    def check_culprits(self, run):
        """The ranks that stand out by the ranks' own events are named, and no others. On a busy machine that need not
        be the rank that works longest: another one may get no processor. Near the limit both are right."""
        self.check_stands_out(run, Waits(list(run.files.values())).made)

    def check_stands_out(self, run, made):
        times, ticks = (sum(sum(one[first::2]) for one in made.values()) for first in (0, 1))
        least = 1 / self.ranks + (1 - 1 / self.ranks) / 3
        for rank in range(self.ranks):
            one = made.get(rank, [0] * 6)
            share = min(sum(one[0::2]) / times, sum(one[1::2]) / ticks)
            if abs(share - least) > 0.02:
                self.assertEqual(rank in self.culprits(run), share > least, (rank, share, run.text))

    def test_collectives(self):
        for run in self.compare("collectives"):
            # 20 rounds of 6.
            self.assertEqual(run.profile["waits"]["collectives"], 120)
            # The record of the last round is the report's.
            self.assertEqual(run.rounds[-1]["waits"], run.profile["waits"])
            self.assertIn("Waits by event", run.text)

    def test_communicators(self):
        # Halves, copies of them and the odd ranks: 20 of each that has several.
        for run in self.compare("communicators", ranks=4):
            self.assertEqual(run.profile["waits"]["collectives"], 5 * 20)

    def test_collectives_that_are_started(self):
        for run in self.compare("started"):
            self.check_culprits(run)
            wait = next(event for event in run.profile["events"] if event["name"] == "MPI_Wait")
            # No rank waits longer than it was in the call: rank 0 computes for a part of the time.
            inside = [sum(int(note[6]) - int(note[5]) for note in notes if note[0] == "started")
                      for notes in run.notes.values()]
            self.assertLessEqual(wait["wait_ns"]["max"], max(inside) * (1 + RATE))
            self.assertGreater(wait["wait_ns"]["max"], 0)

    def test_a_collective_is_not_completed_by_the_wait_for_another_request_of_its_handle(self):
        for fan_out, tree in self.trees.items():
            run = self.run_case("completed", *tree)
            with self.subTest(fan_out=fan_out):
                self.check_figures(run)
                waits = run.profile["waits"]
                self.assertEqual((waits["collectives"], waits["incomplete"], waits["unmatched_receives"]), (20, 0, 0))

    def test_messages(self):
        for run in self.compare("messages"):
            names = {event["name"] for event in run.profile["events"] if event["wait_ns"] is not None}
            self.assertEqual(names, {"MPI_Recv", "MPI_Waitall", "MPI_Sendrecv", "MPI_Send"})

    @turns.alone(turns.LATENESS)
    def test_messages_that_come_late_and_ranks_that_receive_late_are_counted(self):
        run = self.run_case("messages", *TREES[2])
        self.check_figures(run)
        one = {one["rank"]: one for one in run.profile["waits"]["ranks"]}
        # A large message is not sent before rank 0 receives.
        self.assertGreaterEqual(one[0]["late_receives"], 10)
        self.assertGreaterEqual(sum(one[rank]["late_sends"] for rank in range(1, self.ranks)), 10)

    def test_an_exchange_waits_for_the_rank_to_which_it_sends(self):
        for run in self.compare("exchanges"):
            one = {one["rank"]: one for one in run.profile["waits"]["ranks"]}
            late = one[self.ranks - 1]
            # Both its neighbours wait for it: one to receive from it, and one to send to it. How long they do has been
            # compared with the events; on a busy machine the others are late as well.
            self.assertGreater(late["late_send_ns"], 0, run.text)
            if self.ranks > 2:
                # Between hosts the clocks may not tell how long an exchange waited to send.
                exchange, = (event["wait_ns"] for event in run.profile["events"] if event["name"] == "MPI_Sendrecv")
                self.assertTrue(late["late_receive_ns"] > 0 or exchange["error"] > 0, run.text)
            else:
                self.assertEqual(late["late_receives"], 0, "one rank is both neighbours")

    def test_messages_of_a_program_that_may_have_several_threads(self):
        for run in self.compare("messages", environment={"WAITS_THREADED": "1"}):
            self.assertEqual(run.profile["waits"]["unsure"], 0)
        for run in self.compare("threads", environment={"WAITS_THREADED": "1"}):
            # Those that the second thread received in the channel of the first.
            self.assertEqual(run.profile["waits"]["unsure"], 20 * self.ranks)
            self.assertIn("receives whose message is unknown", run.text)

    def test_communicators_that_are_not_used_in_the_order_of_their_making(self):
        made = {"made": ({}, 5 * 12), "makers": ({"WAITS_THREADED": "1"}, 20 * 2)}
        for case, (environment, expected) in made.items():
            for fan_out, tree in self.trees.items():
                run = self.run_case(case, *tree, environment=environment)
                waits = run.profile["waits"]
                with self.subTest(case=case, fan_out=fan_out):
                    told = {what: waits[what] for what in ("collectives", "mixed", "incomplete", "unordered")}
                    wanted = {"collectives": expected, "mixed": 0, "incomplete": 0, "unordered": 0}
                    self.assertEqual(told, wanted, run.text)

    def renewed(self, case):
        """Of 1000 communicators that are used once and freed; the last rank is late to one of 50, by 20 ms, as far as
        the others find processors meanwhile: what these have waited for it is taken from the program's notes. Where
        ranks were held up at all of these, which a wrong event would look like once, the program is run again."""
        for _ in range(RUNS_MAX):
            run = self.run_case(case, *TREES[2])
            self.check_renewed(run)
            pauses = self.pauses(run)
            made = sum(one["made_wait_ns"] for one in run.profile["waits"]["ranks"] if one["rank"] == self.ranks - 1)
            self.assertGreaterEqual(made, pauses / 2, run.text)
            if pauses > 0:
                return
        self.fail(f"in {RUNS_MAX} runs the events of no late call are as long as its notes")

    def check_renewed(self, run):
        self.check_notes(run)
        self.check_figures(run)
        waits = run.profile["waits"]
        known = ("collectives", "without_communicator", "left_out", "former", "unmatched_receives")
        told = {what: waits[what] for what in known}
        wanted = {"collectives": 1000, "without_communicator": 0, "left_out": 0, "former": 0, "unmatched_receives": 0}
        self.assertEqual(told, wanted, run.text)

    def pauses(self, run):
        """How long the other ranks have waited for the last one by their notes, in nanoseconds; only where the events
        of all began when the notes did, and it came clearly after the others."""
        begins = [self.sure_begins(run, rank) for rank in range(self.ranks)]
        self.assertEqual([len(times) for times in begins], [len(LATE_COPIES)] * self.ranks)
        sure = [times for times in zip(*begins) if None not in times]
        return sum(last - one for *others, last in sure if last > max(others) + CLOCK_ERROR_MAX for one in others)

    def sure_begins(self, run, rank):
        """When a rank came to the communicators to which the last one is late; None where its event is shorter than
        its note, by which it was without a processor between the two. Lengths do not depend on how clocks are aligned."""
        file, found = run.files[rank], []
        notes = [note for note in run.notes[rank] if note[0] == "collective"]
        events = [event for event in file.events if event.kind == COLLECTIVE]
        for note, event in zip(notes, events[len(events) - len(notes):]):
            if note[2] in LATE_COPIES:
                begin, end = int(note[5]), int(note[6])
                length = file.in_ns(event.time + event.span) - file.in_ns(event.time)
                is_sure = end - begin - length <= 2 * NOTE_NS + (end - begin) * RATE
                found.append(begin if is_sure else None)
        return found

    def test_of_communicators_that_come_and_go_each_is_known(self):
        # Behind 10,000 of each process.
        self.renewed("renewed")

    def test_places_of_freed_communicators_are_used_again_and_no_record_is_taken_for_the_other_one(self):
        # Before these all places have been taken once.
        self.renewed("reused")

    def test_what_found_no_place_is_not_taken_for_another_one_once_there_are_places_again(self):
        # Rings that name as many communicators as there are places for.
        run = self.run_case("full", *TREES[2], ranks=2, environment={"SAPWOOD_MPI_RING_BYTES": "2097152"})
        waits = run.profile["waits"]
        # Each rank has called a hundred that it had no place for: most of them have one by then, without a number.
        self.assertGreaterEqual(waits["unordered"], 2 * (100 - 64), run.text)
        self.assertEqual(waits["mixed"], 0, run.text)
        lost = [[event for event in run.files[rank].events if event.sequence == 0] for rank in (0, 1)]
        identities = [{event.space.identity for event in events} for events in lost]
        self.assertTrue(all(identities) and identities[0].isdisjoint(identities[1]), identities)
        flags = {rank: self.window_flags(run.event_files[at]) for at, rank in enumerate(map(rank_of, run.event_files))}
        # A window whose communicator is not known to others is not, either; the calls that failed have made none.
        self.assertEqual((set(flags[0]), flags[1]), ({SPACE_WINDOW | SPACE_NUMBER_LOST}, [SPACE_WINDOW] * 100))
        self.assertIn(len(flags[0]), range(100 - 64, 100))

    @staticmethod
    def window_flags(data):
        """The flags of each window in the event file of a rank."""
        used, = struct.unpack_from("<I", data, 72)
        flags = [struct.unpack_from("<I", data, 256 + 64 * space + 28)[0] for space in range(used)]
        return [one for one in flags if one & SPACE_WINDOW]

    def test_of_communicators_that_live_at_once_each_is_known(self):
        run = self.run_case("alive", *TREES[2])
        [made] = {int(note[1]) for notes in run.notes.values() for note in notes if note[0] == "alive"}
        waits = run.profile["waits"]
        # MPICH has no more at once.
        self.assertGreater(made, 2000)
        self.assertEqual((waits["collectives"], waits["without_communicator"]), (made, 0), run.text)

    def test_more_than_four_threads_are_recorded(self):
        run = self.run_case("crew", *TREES[2], environment={"WAITS_THREADED": "1"})
        waits = run.profile["waits"]
        self.assertEqual((waits["without_ring"], waits["collectives"], waits["incomplete"]), (0, 8 * 5, 0), run.text)

    def test_behind_a_collective_that_failed_nothing_is_guessed(self):
        for fan_out, tree in self.trees.items():
            run = self.run_case("truncated", *tree)
            waits = run.profile["waits"]
            # Of 40 collectives number 21 failed at the last rank; behind it that one and the others are alone.
            told = {what: waits[what] for what in ("collectives", "mixed", "incomplete", "unordered")}
            wanted = {"collectives": 21, "mixed": 0, "incomplete": 19, "unordered": 19}
            with self.subTest(fan_out=fan_out):
                self.assertEqual(told, wanted, run.text)

    def test_what_is_not_sure_is_counted_and_not_guessed(self):
        run = self.run_case("unsure")
        waits = run.profile["waits"]
        # One receive from any source at a time is sure.
        several = 10 * (self.ranks - 1) if self.ranks > 2 else 0
        self.assertEqual(waits["unsure"], several + 10 * 2, run.text)
        self.assertEqual((waits["unmatched_receives"], waits["unmatched_sends"]), (0, 0))
        self.assertIn("receives whose message is unknown", run.text)
        waited = {event["name"]: event["wait_ns"]["calls"] for event in run.profile["events"] if event["wait_ns"] is not None}
        self.assertNotIn("MPI_Wait", waited)
        self.assertEqual(waited.get("MPI_Waitall", 0), 0 if self.ranks > 2 else 10)

    def test_rings_that_overflow_say_so_and_the_rest_is_right(self):
        # Nothing is read before the end.
        run = self.run_case("many", interval="60s", environment={"SAPWOOD_MPI_RING_BYTES": "4096"})
        self.check_notes(run)
        expected = self.check_figures_of_the_last(run)
        waits = run.profile["waits"]
        self.assertGreaterEqual(waits["dropped"], self.ranks * (20020 - 128))
        self.assertGreaterEqual(expected, 20)
        self.assertIn("events overwritten before they were read", run.text)

    def check_figures_of_the_last(self, run):
        """Rings hold 128 records, of which the place of the next one is not read."""
        for file in run.files.values():
            file.events = file.events[1:] if len(file.events) + len(file.clocks) == 128 else file.events
        return self.check_figures(run).collectives

    @turns.alone(turns.LATENESS)
    def test_a_rank_that_dies_is_waited_for_until_then(self):
        run = WaitsRun(self.abi, self.ranks, "dies", "--topology", "2^2")
        self.assertNotEqual(run.code, 0)
        waits = run.profile["waits"]
        self.assertEqual((waits["collectives"], waits["mixed"]), (20, 0), run.text)
        most = max(waits["ranks"], key=lambda one: one["times_last"])
        self.assertEqual(most["rank"], self.ranks - 1, run.text)
        # One that waits for it by half of what it sleeps is the least, whatever else the machine does.
        self.assertGreaterEqual(most["made_wait_ns"], 20 * 25e6 / 2, run.text)
        # It has left no file of its events: the figures of the tree are judged by themselves.
        words = ("times_last", "made_wait_ns", "late_sends", "late_send_ns", "late_receives", "late_receive_ns")
        self.check_stands_out(run, {one["rank"]: [one[word] for word in words] for one in waits["ranks"]})
        barrier = next(event for event in run.profile["events"] if event["name"] == "MPI_Barrier")
        self.assertEqual(barrier["wait_ns"]["calls"], 20 * self.ranks)

    @turns.alone("a rank that gets no processor is one for which others wait")
    def test_no_rank_is_accused_in_an_even_program(self):
        run = self.run_case("even")
        self.check_figures(run)
        self.assertEqual(self.culprits(run), [], run.text)
        self.assertIn("no rank stands out", run.text)

    def test_without_the_option_nothing_is_recorded(self):
        run = WaitsRun(self.abi, self.ranks, "started", waits=False)
        self.assertEqual((run.code, run.files, run.profile["waits"]), (0, {}, None), run.errors)
        self.assertTrue(all(event["wait_ns"] is None for event in run.profile["events"]))
        self.assertNotIn("Waits by event", run.text)

    def test_recording_is_switched_on_and_off_while_the_program_runs(self):
        with tempfile.TemporaryDirectory(prefix="sapwood-mpi-waits-") as folder:
            environment = {"XDG_RUNTIME_DIR": folder}

            def control(run, word, goes_on):
                subprocess.run([sapwood(), "mpi", "control", "--tracing", word], env={**os.environ, **environment},
                               check=True, capture_output=True, timeout=watched.RUN_SECONDS_MAX)
                run.wait_for(f"recording {word}", lambda: goes_on(run.read_rounds_so_far()))

            def act(run):
                paced.wait_for_ranks(run)
                run.read_rounds_so_far = lambda: whole_lines(os.path.join(run.out, "rounds.ndjson"))
                known = lambda rounds: [(one["waits"] or {"collectives": 0})["collectives"] for one in rounds]
                control(run, "on", lambda rounds: known(rounds)[-1:] > [20])
                # What is under way comes; then nothing new.
                control(run, "off", lambda rounds: len(set(known(rounds)[-8:])) == 1)
                paced.end()

            with Paced(self.abi, self.ranks) as paced:
                run = Watched(paced.command, "--interval", "100ms", "--quiet", while_running=act,
                              environment=environment)
        self.assertEqual(run.code, 0, run.errors)
        waits = run.profile["waits"]
        calls = {event["name"]: event["calls"]["sum"] for event in run.profile["events"]}
        self.assertEqual((waits["mixed"], waits["dropped"], waits["unmatched_receives"]), (0, 0, 0))
        self.assertGreater(waits["collectives"], 20)
        # Not those before and after.
        self.assertLess(waits["collectives"], (calls["MPI_Allreduce"] + calls["MPI_Bcast"]) // self.ranks)

    def test_a_watcher_that_comes_late_reads_what_was_recorded(self):
        def act(run):
            rounds = lambda: whole_lines(os.path.join(run.out, "rounds.ndjson"))
            are_read = lambda: any(one["waits"] and one["waits"]["collectives"] > 20 for one in rounds())
            run.wait_for("collectives that are read", are_read)
            paced.end()

        with contextlib.ExitStack() as ends:
            paced = ends.enter_context(Paced(self.abi, self.ranks))
            job, _ = ends.enter_context(preloaded(self.abi, paced.command, SAPWOOD_MPI_WAITS="1"))
            wait_until("ranks that count", paced.has_begun)
            run = Watched(["attach", str(job.pid)], "--waits", "--interval", "100ms", "--quiet", while_running=act)
            self.assertEqual((run.code, job.wait(watched.RUN_SECONDS_MAX)), (0, 0), run.errors)
        calls = {event["name"]: event["calls"]["sum"] for event in run.profile["events"]}
        expected = (calls["MPI_Allreduce"] + calls["MPI_Bcast"]) // self.ranks
        waits = run.profile["waits"]
        self.assertEqual((waits["collectives"], waits["incomplete"], waits["dropped"]), (expected, 0, 0))

    def named_last(self, case, rounds):
        """Behind as many names of what was freed since, a communicator's name is told."""
        told = []

        def end(run):
            # Where a rank finds no processor, an earlier call may be told first.
            told.append(words_until(run, "rank 0 in MPI_Barrier on last"))
            run.process.send_signal(signal.SIGTERM)

        command = [*LAUNCHERS[self.abi], "2", test_program(self.abi, "names"), case, str(rounds)]
        run = Watched(command, "--interval", "200ms", while_running=end)
        self.assertNotIn("names of communicators", told[0] + run.errors)
        [episode] = run.profile["standstills"][-1:]
        self.assertIn(("MPI_Barrier", "last"), [(one["function"], one["communicator"]) for one in episode["waiting"]])

    def test_the_room_of_names_is_used_again_once_communicators_are_freed(self):
        self.named_last("passing", 20000)

    def test_the_room_of_names_is_used_again_once_windows_are_freed(self):
        self.named_last("windows", 1500)

    def names_left_out(self, case):
        """How often it is said of 1200 communicators at once, how many names each rank has left out, and the figure of
        the report, of which the text tells the sum."""
        run = Watched([*LAUNCHERS[self.abi], "2", test_program(self.abi, "names"), case, "1200"], "--quiet")
        self.assertEqual((run.code, sorted(run.dumps)), (0, [0, 1]), run.errors)
        left_out = [struct.unpack_from("<Q", dump.data, 376)[0] for dump in run.dumps.values()]
        self.assertEqual([dump.nameless for dump in run.dumps.values()], [0, 0])
        figure = run.profile["figures"].get("names_left_out")
        told = re.findall(r"names of communicators, windows and files left out: ([\d,]+);", run.report)
        self.assertEqual(told, [] if figure is None else [f"{figure['sum']:,}"], run.report)
        said = run.errors.count("names of communicators, windows and files that")
        return said, left_out, figure and figure["sum"]

    def test_names_that_find_no_room_are_counted_and_said_once(self):
        # 48 bytes each, of 8192.
        lost = 1200 - 8 * (1024 // 48)
        self.assertEqual(self.names_left_out("living"), (1, [lost] * 2, 2 * lost))

    def test_a_file_whose_path_finds_no_room_is_counted_once_and_not_with_each_call(self):
        lost = 1200 - 8 * (1024 // 48) + 1
        self.assertEqual(self.names_left_out("files"), (1, [lost] * 2, 2 * lost))

    def test_a_file_whose_path_finds_no_room_takes_no_place_from_a_communicator(self):
        lost = 1200 - 8 * (1024 // 48) + 1
        self.assertEqual(self.names_left_out("past"), (1, [lost] * 2, 2 * lost))

    def test_one_name_of_many_communicators_stands_once(self):
        self.assertEqual(self.names_left_out("alike"), (0, [0, 0], None))

    def test_handles_of_communicators_that_are_made_and_freed_unseen_mean_others(self):
        run = RecordedRun([*LAUNCHERS[self.abi], "2", test_program(self.abi, "unseen"), "300"], "--waits", "--interval",
                          "100ms", "--quiet")
        self.assertEqual(run.code, 0, run.errors)
        again = int(run.output.split()[0])
        self.assertGreater(again, 300)
        waits = run.profile["waits"]
        told = {what: waits[what] for what in ("collectives", "mixed", "incomplete", "unordered", "left_out")}
        # One to five in a round, and one to three.
        wanted = {"collectives": 300 * 3 + 300 * 2, "mixed": 0, "incomplete": 0, "unordered": 0, "left_out": 0}
        self.assertEqual(told, wanted, run.report)

    def test_a_deadlock_of_a_fortran_program_is_told_with_its_communicator_and_tags(self):
        program = prerequisites.built(watched.library_folder(), f"{self.abi}/waits_f08")

        def end(run):
            words_until(run, "sapwood:   waiting: ")
            until_stuck(run, "a ring for which all wait", is_ring)
            run.process.send_signal(signal.SIGINT)

        def is_ring(stuck):
            return stuck["finding"] == "ring" and {one["ranks"] for one in stuck["waiting"]} == {"0", "1", "2"}

        run = WhyRun([*LAUNCHERS[self.abi], "3", program], out=False, while_running=end)
        stuck = run.why["stuck"]
        self.assertIsNotNone(stuck, run.errors)
        self.assertEqual((stuck["finding"], stuck["ring"], stuck["culprits"]), ("ring", [0, 1], "0-1"), stuck)
        self.assertEqual(stuck["statement"], "deadlock in a ring of 2 ranks: 0 waits for 1 (MPI_Recv on pair), "
                                             "1 waits for 0 (MPI_Recv on pair)")
        keys = ("function", "communicator", "with", "tag", "number", "waits_for")
        waiting = {one["ranks"]: tuple(one[key] for key in keys) for one in stuck["waiting"]}
        self.assertEqual(waiting, {"0": ("MPI_Recv", "pair", 1, 17, 0, "1"), "1": ("MPI_Recv", "pair", 0, 23, 0, "0"),
                                   "2": ("MPI_Barrier", "MPI_COMM_WORLD", None, None, 2, "0-1")})

    def test_a_ring_of_no_size_is_said(self):
        run = self.run_case("started", environment={"SAPWOOD_MPI_RING_BYTES": "12x"})
        self.assertIn("SAPWOOD_MPI_RING_BYTES is '12x', not a number from 4096 to 2097152", run.errors)


class OpenMpi(WaitsTruth, unittest.TestCase):
    abi = "openmpi"


class Mpich(WaitsTruth, unittest.TestCase):
    abi = "mpich"
    # As in truth.py.
    ranks = 2
    # Trees, which know no MPI, are compared with Open MPI.
    trees = {2: TREES[2]}


load_tests = turns.load_tests

if __name__ == "__main__":
    watched.sapwood(), watched.library_folder()
    unittest.main()
