// A histogram over the ranks as it changes with time: rounds from left to right, values upwards.

import { element, Choice, nothing } from "../element";
import { byMetric, count, metricName } from "../format";
import { HeatMap } from "../heatmap";
import type { Histogram } from "../record";
import { type Page, type Scene, type View, markedColumn, times } from "../view";
import { eventName } from "./events";

const ROWS = 64;
const keyOf = (histogram: Histogram): string =>
  JSON.stringify([histogram.event, histogram.communicator_size_class, histogram.metric, histogram.method]);

export class HistogramView implements View {
  readonly name = "histogram";
  readonly title = "Histogram";
  readonly root = element("section");
  private readonly which: Choice;
  private readonly map: HeatMap;
  private readonly heading = element("h2");
  private readonly note = element("p", { class: "quiet" });
  private readonly empty = nothing(
    "There is no histogram in these rounds.",
    "Start with --histogram EVENT, such as --histogram MPI_Allreduce, to have one made in the tree.",
  );
  private readonly content: HTMLElement;

  constructor(page: Page) {
    this.which = new Choice("Event and metric", () => page.redraw());
    this.map = new HeatMap((column) => page.look(this.shown[column] ?? 0));
    this.content = element("div", {}, this.heading, element("div", { class: "tools" }, this.which.root), this.map.root, this.note);
    this.root.append(this.empty, this.content);
  }

  private shown: number[] = [];

  draw(scene: Scene): void {
    const latest = new Map<string, Histogram>();
    for (const histogram of scene.rounds[scene.at]?.record.histograms ?? []) latest.set(keyOf(histogram), histogram);
    this.empty.hidden = latest.size > 0;
    this.content.hidden = latest.size === 0;
    if (latest.size === 0) return;
    this.which.offer([...latest].map(([key, one]) => [key, `${eventName(one)}: ${metricName(one.metric)}`]));
    const wanted = latest.get(this.which.value);
    if (!wanted) return;
    this.shown = times(scene);
    const series = scene.rounds.map((round) => round.record.histograms.find((one) => keyOf(one) === this.which.value) ?? null);
    const filled = series.filter((one) => one !== null);
    const low = Math.min(...filled.map((one) => one.bins.low));
    const high = Math.max(...filled.map((one) => one.bins.high));
    const height = (high - low) / ROWS || 1;
    // The bins of each round lie where its own values are; the map has rows of one height.
    const shares = series.map((one) => one && rowsOf(one, low, height));
    const most = Math.max(1e-9, ...shares.map((rows) => (rows ? Math.max(...rows) : 0)));
    this.heading.textContent = `${eventName(wanted)}: ${metricName(wanted.metric)} of the ranks, since the start`;
    this.note.textContent = `Method: ${wanted.method}; ${count(wanted.bins.counts.reduce((sum, ranks) => sum + ranks, 0))} ranks in ${wanted.bins.counts.length} bins from ${byMetric(wanted.metric, wanted.bins.low)} to ${byMetric(wanted.metric, wanted.bins.high)} in this round.`;
    this.map.draw(
      {
        times: this.shown,
        bins: ROWS,
        // The root, so that a few ranks far from the others are seen.
        value: (column, row) => (shares[column] && shares[column][row] > 0 ? Math.sqrt(shares[column][row] / most) : null),
        low: 0,
        high: 1,
        format: (value) => (value === 0 ? "0 ranks" : `${count(most * value * value)} ranks`),
        edge: (row) => byMetric(wanted.metric, low + row * height),
        cell: (column, row) => {
          const [from, to] = [low + row * height, low + (row + 1) * height];
          return `${count(shares[column]?.[row] ?? 0)} ranks from ${byMetric(wanted.metric, from)} to ${byMetric(wanted.metric, to)}`;
        },
        marked: markedColumn(scene),
      },
      this.note.textContent,
    );
  }

  step(by: number): void {
    this.which.step(by);
  }
}

function rowsOf(one: Histogram, low: number, height: number): number[] {
  const rows = new Array<number>(ROWS).fill(0);
  const width = (one.bins.high - one.bins.low) / one.bins.counts.length;
  for (const [at, ranks] of one.bins.counts.entries()) {
    if (ranks === 0) continue;
    const [from, to] = [(one.bins.low + at * width - low) / height, (one.bins.low + (at + 1) * width - low) / height];
    const first = Math.min(ROWS - 1, Math.floor(from));
    const last = Math.min(ROWS - 1, Math.max(first, Math.ceil(to) - 1));
    // The ranks of a bin are spread over the rows that it covers.
    for (let row = first; row <= last; row++) {
      const part = to > from ? (Math.min(to, row + 1) - Math.max(from, row)) / (to - from) : 1;
      rows[row] += ranks * Math.max(0, Math.min(1, part));
    }
  }
  return rows;
}
