"""Which ranks made others wait in a collective, by the events that each rank wrote by itself.

A rank that gets no processor comes late without being told to: tests in which a rank is late on purpose ask here
which others were, too.
"""

import copy

from rank_events import STARTED, Waits

# `trace why` leaves out a rank that made others wait for less than 5 % of the time that was lost; near that it may do
# either.
PART_MIN = 0.04


def waits_of(files, function):
    """The waits in the collectives that this function has started."""
    identities = {event.space.identity for file in files for event in file.events
                  if event.kind == STARTED and event.function == function}
    chosen = []
    for file in files:
        one = copy.copy(file)
        one.events = [event for event in file.events if event.space.identity in identities]
        chosen.append(one)
    return Waits(chosen)


def waited_for(run, function):
    """The ranks of a run for which others have waited for a part of the lost time, and those that came together with
    such a rank: they waited less than half as long as the one that waited longest."""
    files = list(run.files.values())
    waits = waits_of(files, function)
    waited = dict.fromkeys((file.rank for file in files), 0)
    for (rank, _), (_, ticks) in waits.waited.items():
        waited[rank] += ticks
    lost = sum(waited.values())
    made = {rank for rank, (_, ticks, *_) in waits.made.items() if ticks > 0 and ticks >= lost * PART_MIN}
    return made | {rank for rank, ticks in waited.items() if ticks < max(waited.values()) / 2}
