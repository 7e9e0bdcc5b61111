"""Runs whose ranks write their events to disk, beside their profiles."""

import functools
import os

from rank_events import EventFile
from watched import Watched


class RecordedRun(Watched):
    """A run of which `files` are the ranks' own events, by rank."""

    def read_rows(self):
        # Before the profiles of the same folder are read.
        dumps, self.event_files = os.path.join(self.folder, "dumps"), []
        for name in filter(lambda name: name.endswith(".events"), os.listdir(dumps)):
            path = os.path.join(dumps, name)
            with open(path, "rb") as file:
                self.event_files.append(file.read())
            os.unlink(path)
        return super().read_rows()

    @functools.cached_property
    def files(self):
        return {one.rank: one for one in map(EventFile, self.event_files)}
