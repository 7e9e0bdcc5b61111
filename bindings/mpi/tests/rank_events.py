"""Reads an event file as events.h lays it out, and tells waits from those of all ranks.

Nothing here is Sapwood's code: it is what the tree's figures are compared with.
"""

import struct
from collections import defaultdict, namedtuple

from rank_profile import function_names, size_class

HEADER = struct.Struct("<8sIIIIIIQQQQIIIIIIQQQQQI")
SPACE = struct.Struct("<QQIIIIII16xQ")
RECORD = struct.Struct("<QQHBBIii")
# As hops.h lays it out.
HOP = struct.Struct("<QQBBHIII")
(ENTERED, ARRIVED, SENT_UP, RECEIVED_DOWN, EXIT), (LATE, TO_ALL, ROOT) = range(1, 6), (1, 2, 4)
(COLLECTIVE, STARTED, COMPLETED, SEND, SEND_STARTED, RECEIVE, RECEIVE_COMPLETED, CLOCK) = range(1, 9)
FROM_ROOT = {"Bcast", "Scatter", "Scatterv"}
TO_ROOT = {"Reduce", "Gather", "Gatherv"}

Event = namedtuple("Event", "rank time span function space kind members sequence peer tag")
Space = namedtuple("Space", "identity size rank between since handle")
Hop = namedtuple("Hop", "time communicator kind flags size instance rank child")


class EventFile:
    """One rank's events: `events` in the order of its rings, `dropped`, and the clock's fields."""

    def __init__(self, data):
        (magic, version, header_bytes, self.rank, self.size, self.pid, self.flags, file_bytes, self.ticks, self.ns,
         self.scale, self.state, _, spaces, rings, records, at, self.without_ring, self.without_space,
         self.unsure, _, self.without_hop_ring, hop_rings) = HEADER.unpack_from(data)
        assert (magic, version, header_bytes) == (b"SWEVENTS", 1, 256)
        names = function_names()
        self.spaces = []
        for i in range(spaces):
            handle, identity, _, size, rank, flags, _, _, since = SPACE.unpack_from(data, header_bytes + 64 * i)
            self.spaces.append(Space(identity, size, rank, flags & 1, since, handle))
        self.events, self.dropped, self.clocks = [], 0, []
        for ring in range(rings):
            begin = at + ring * (64 + 32 * records)
            head = struct.unpack_from("<Q", data, begin)[0]
            self.dropped += max(0, head - records)
            for number in range(max(0, head - records), head):
                time, timing, space, kind, members, sequence, peer, tag = RECORD.unpack_from(
                    data, begin + 64 + 32 * (number % records))
                if kind == CLOCK:
                    self.clocks.append((time, timing))
                    continue
                # No record names a communicator whose place another one has by now.
                assert time >= self.spaces[space].since, (time, self.spaces[space])
                self.events.append(Event(self.rank, time, timing >> 16, names[timing & 0xFFFF], self.spaces[space], kind,
                                         members, sequence, peer, tag))
        self.hops, hops_at = [], at + rings * (64 + 32 * records)
        for ring in range(hop_rings):
            begin = hops_at + ring * (64 + 32 * records)
            head = struct.unpack_from("<Q", data, begin)[0]
            for number in range(max(0, head - records), head):
                self.hops.append(Hop(*HOP.unpack_from(data, begin + 64 + 32 * (number % records))))
        assert file_bytes == len(data) == hops_at + hop_rings * (64 + 32 * records)

    def in_ns(self, ticks):
        """Nanoseconds of CLOCK_MONOTONIC, by the file's own calibration."""
        return self.ns + ((ticks - self.ticks) * self.scale >> 32)


def key(event):
    """Name and size class, as profile.json tells events apart."""
    if event.function.startswith(("MPI_Wait", "MPI_Test", "MPI_Start")):
        return event.function, None
    return event.function, size_class(event.space.size)


def is_exchange(event):
    """Whether the call sends one message and receives another."""
    return event.function.startswith("MPI_Sendrecv")


class Waits:
    """What all ranks' events say of waits, in ticks.

    `waited` maps (rank, event) to (calls, ticks), `made` a rank to its [times last, ticks, late sends, ticks,
    late receives, ticks]. `ties` maps a rank to how often it came within a nanosecond of when another time of
    the same call decides: [as the last one, as a late sender, as a late receiver]. The tree counts whole
    nanoseconds, of which a tick is a part, so there it may be told either way. `slack` is how many ticks hang on that.
    """

    def __init__(self, files):
        self.waited = defaultdict(lambda: [0, 0])
        self.made = defaultdict(lambda: [0] * 6)
        self.ties = defaultdict(lambda: [0] * 3)
        self.slack = 0
        self.tick_ns = files[0].scale / 2**32
        self.collectives = self.incomplete = self.unmatched_receives = 0
        # Of each collective, how long before or after its last rank the one came that is nearest to that, in ticks.
        self.nearest = []
        events = [event for file in files for event in file.events]
        self.tell_collectives(events)
        self.tell_messages(events)

    def credit(self, rank, event, ticks):
        entry = self.waited[(rank, event)]
        entry[0] += 1
        entry[1] += ticks

    def is_tie(self, ticks):
        return ticks * self.tick_ns <= 1

    def collectives_within(self, ns):
        """How many collectives there are to which another rank came within this time of the one that counts as last."""
        return sum(ticks * self.tick_ns <= ns for ticks in self.nearest)

    def tell_collectives(self, events):
        instances, completed = defaultdict(list), {}
        for event in events:
            if event.space.size < 2 or event.space.between:
                continue
            place = (event.space.identity, event.sequence)
            if event.kind in (COLLECTIVE, STARTED):
                instances[place].append(event)
            elif event.kind == COMPLETED:
                completed[(*place, event.rank)] = event
        for place, arrivals in instances.items():
            if len(arrivals) < arrivals[0].space.size:
                self.incomplete += 1
                continue
            self.collectives += 1
            word = arrivals[0].function.removeprefix("MPI_").removesuffix("_c").removesuffix("_init")
            word = word.removeprefix("I").capitalize()
            root = next((one for one in arrivals if one.peer == one.space.rank), None)
            pool = [one for one in arrivals if one is not root] if word in TO_ROOT else arrivals
            culprit = root if word in FROM_ROOT else min(pool, key=lambda one: (-one.time, one.rank))
            self.nearest.append(min(abs(culprit.time - one.time) for one in arrivals if one is not culprit))
            # Those that wait: the root, or all.
            first = root.time if word in TO_ROOT else min(one.time for one in arrivals)
            if culprit.time > first:
                self.made[culprit.rank][0] += 1
            rivals = [culprit] if word in FROM_ROOT else [one for one in pool if self.is_tie(culprit.time - one.time)]
            if len(rivals) > 1 or self.is_tie(culprit.time - first):
                for one in rivals:
                    self.ties[one.rank][0] += 1
            for one in arrivals:
                waiting = completed.get((*place, one.rank)) if one.kind == STARTED else one
                if waiting is None:
                    continue
                waits = one.rank != culprit.rank and (word not in TO_ROOT or one is root)
                ticks = min(max(0, culprit.time - waiting.time), waiting.span) if waits else 0
                self.credit(one.rank, key(waiting), ticks)
                self.made[culprit.rank][1] += ticks

    def tell_messages(self, events):
        sends = {}
        for event in events:
            if event.kind in (SEND, SEND_STARTED):
                sends[(event.space.identity, event.space.rank, event.peer, event.tag, event.sequence)] = event
        calls, takers = defaultdict(list), {}
        for event in events:
            if event.kind not in (RECEIVE, RECEIVE_COMPLETED):
                continue
            send = sends.get((event.space.identity, event.peer, event.space.rank, event.tag, event.sequence))
            if send is not None and send.kind == SEND and event.kind == RECEIVE:
                ticks = min(max(0, event.time - send.time), send.span)
                self.credit(send.rank, key(send), ticks)
                if ticks:
                    self.made[event.rank][4] += 1
                    self.made[event.rank][5] += ticks
                self.ties[event.rank][2] += self.is_tie(abs(event.time - send.time))
            if send is not None and is_exchange(send) and event.kind == RECEIVE:
                takers[(send.rank, send.time)] = event
            if event.members == 0:
                continue
            if send is None:
                self.unmatched_receives += 1
            calls[(event.rank, event.time)].append((event, send))
        for members in calls.values():
            one = members[0][0]
            if len(members) < one.members or any(send is None for _, send in members):
                continue
            late = min((send for _, send in members), key=lambda send: (-send.time, send.rank))
            ticks = min(max(0, late.time - one.time), one.span)
            taker = takers.get((one.rank, one.time)) if is_exchange(one) else None
            self.credit(one.rank, key(one), ticks + self.tell_taker(one, ticks, taker))
            if ticks:
                self.made[late.rank][2] += 1
                self.made[late.rank][3] += ticks
            rivals = [send for _, send in members if self.is_tie(late.time - send.time)]
            if len(rivals) > 1 or self.is_tie(abs(late.time - one.time)):
                for send in rivals:
                    self.ties[send.rank][1] += 1

    def tell_taker(self, one, ticks, taker):
        """How long an exchange that waited for its sender then waited for the rank to which it sends."""
        if taker is None:
            return 0
        more = min(max(0, taker.time - one.time), one.span) - ticks
        if self.is_tie(abs(taker.time - one.time - one.span)):
            self.ties[taker.rank][2] += 1
            self.slack += max(0, more)
        if more <= 0 or taker.time >= one.time + one.span:
            return 0
        self.ties[taker.rank][2] += self.is_tie(more)
        self.made[taker.rank][4] += 1
        self.made[taker.rank][5] += more
        return more
