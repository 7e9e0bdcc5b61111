// Calls in progress: the call that each rank is inside, since when.

import { element, nothing } from "../element";
import { count, printable, rankSet, seconds, setSize } from "../format";
import type { Activity } from "../record";
import { Table } from "../table";
import type { Scene, View } from "../view";

export class CallsView implements View {
  readonly name = "calls";
  readonly title = "Calls in progress";
  readonly root = element("section");
  private readonly empty = nothing(
    "No rank is inside anything in this round.",
    "A rank is shown from MPI_Init on, until it ends.",
  );
  private readonly table = new Table<Activity>(
    [
      { name: "since", title: "the longest time in it, and the rank that has it", value: (activity) => activity.longest_s, text: since },
      { name: "inside", value: inside, text: inside, isText: true },
      { name: "communicator", value: (activity) => activity.communicator, text: (activity) => (activity.communicator ? printable(activity.communicator) : "–"), isText: true },
      { name: "region", value: (activity) => activity.region, text: (activity) => (activity.region ? printable(activity.region) : "–"), isText: true },
      { name: "ranks", value: (activity) => setSize(activity.ranks), text: (activity) => rankSet(activity.ranks), isText: true },
      { name: "with", title: "ranks that they communicate with", value: (activity) => setSize(activity.peers), text: peers, isText: true },
      { name: "process", title: "what the system says", value: (activity) => activity.condition, text: (activity) => printable(activity.condition), isText: true },
    ],
    0,
    (activity) => JSON.stringify([activity.function, activity.communicator, activity.region, activity.condition, activity.is_long]),
  );

  constructor() {
    this.root.append(this.empty, this.table.root);
  }

  draw(scene: Scene): void {
    const record = scene.rounds[scene.at]?.record;
    const activities = record?.activities ?? [];
    this.empty.hidden = activities.length > 0;
    this.table.root.hidden = activities.length === 0;
    const long = activities.filter((activity) => activity.is_long && activity.function !== null);
    const ranks = long.reduce((sum, activity) => sum + setSize(activity.ranks), 0);
    const caption = ranks > 0 ? `${count(ranks)} ranks are inside a call for longer than an interval` : "No call lasts for longer than an interval";
    this.table.draw(activities, caption);
  }

  sort(): void {
    this.table.sortNext();
  }
}

const inside = (activity: Activity): string =>
  (activity.function === null ? "outside of MPI" : printable(activity.function)) + (activity.is_long ? " (long)" : "");

const since = (activity: Activity): string => `${seconds(activity.longest_s)} @${activity.longest_rank}`;

function peers(activity: Activity): string {
  if (activity.any_source) return activity.peers ? `${rankSet(activity.peers)}, any source` : "any source";
  return activity.peers ? rankSet(activity.peers) : "–";
}
