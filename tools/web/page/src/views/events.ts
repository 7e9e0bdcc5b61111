// Events over time: one of them as mean, band and extremes over the ranks, and all of them as a table.

import { Chart, type Line } from "../chart";
import { kind } from "../colour";
import { Choice, element, nothing } from "../element";
import { byMetric, count, metricName, nanoseconds, percent, bytes as size, printable } from "../format";
import type { Metric, MetricName, MpiEvent, Round } from "../record";
import { Table } from "../table";
import { type Page, type Scene, type View, markedTime, times } from "../view";

// Counted at its entry, since a rank's table is closed before it returns.
const UNTIMED = "MPI_Finalize";
const METRICS: MetricName[] = ["time_ns", "calls", "bytes"];

const keyOf = (event: MpiEvent): string => JSON.stringify([event.name, event.communicator_size_class]);

export function eventName(event: { name?: string; event?: string; communicator_size_class: number | null }): string {
  const name = printable(event.name ?? event.event ?? "");
  if (event.communicator_size_class === null) return name;
  const most = 2 ** event.communicator_size_class;
  return `${name} (${most <= 1 ? "1 rank" : `≤ ${count(most)} ranks`})`;
}

export class EventsView implements View {
  readonly name = "events";
  readonly title = "Events";
  readonly root = element("section");
  private chosen = "";
  private readonly metric: Choice;
  private readonly form: Choice;
  private readonly chart: Chart;
  private readonly table: Table<MpiEvent>;
  private readonly heading = element("h2");
  private readonly empty = nothing("No event has been counted yet.", "Events appear with the first round after MPI_Init.");
  private readonly content: HTMLElement;
  // The chosen event in each round, found once.
  private found = new WeakMap<Round, Map<string, MpiEvent | null>>();

  constructor(page: Page) {
    this.metric = new Choice("Metric", () => page.redraw());
    this.metric.offer(METRICS.map((metric) => [metric, metricName(metric)]));
    this.form = new Choice("Shown", () => page.redraw());
    this.form.offer([
      ["total", "since the start, per rank"],
      ["rate", "mean per second of each interval"],
    ]);
    this.chart = new Chart((time) => page.look(time));
    this.table = new Table<MpiEvent>(
      [
        { name: "event", value: (event) => event.name, text: eventName, isText: true },
        { name: "calls", title: "calls of all ranks", value: (event) => event.calls.sum, text: (event) => count(event.calls.sum) },
        timed("time per rank, mean", (event) => event.time_ns.mean, (event) => nanoseconds(event.time_ns.mean)),
        timed("deviation", (event) => event.time_ns.standard_deviation ?? -1, (event) => deviation(event.time_ns)),
        timed("min @ rank", (event) => event.time_ns.min, (event) => `${nanoseconds(event.time_ns.min)} @${event.time_ns.min_rank}`),
        timed("max @ rank", (event) => event.time_ns.max, (event) => `${nanoseconds(event.time_ns.max)} @${event.time_ns.max_rank}`),
        timed("imbalance", (event) => event.imbalance ?? -1, (event) => (event.imbalance === null ? "–" : percent(event.imbalance)), "largest time over the mean, less one"),
        { name: "bytes", title: "bytes of all ranks", value: (event) => event.bytes.sum, text: (event) => (event.bytes.sum === 0 ? "–" : size(event.bytes.sum)) },
        { name: "ranks", title: "ranks that have the event", value: (event) => event.ranks, text: (event) => count(event.ranks) },
      ],
      2,
      keyOf,
      (event) => {
        this.chosen = keyOf(event);
        page.redraw();
      },
      () => this.chosen,
    );
    const tools = element("div", { class: "tools" }, this.metric.root, this.form.root);
    this.content = element("div", {}, this.heading, tools, this.chart.root, this.table.root);
    this.root.append(this.empty, this.content);
  }

  draw(scene: Scene): void {
    const round = scene.rounds[scene.at];
    const events = round?.record.events ?? [];
    this.empty.hidden = events.length > 0;
    this.content.hidden = events.length === 0;
    if (!round || events.length === 0) return;
    let event = events.find((event) => keyOf(event) === this.chosen);
    if (!event) {
      event = events.reduce((most, other) => (other.time_ns.sum > most.time_ns.sum ? other : most));
      this.chosen = keyOf(event);
    }
    const leftOut = round.left_out["events"];
    const more = leftOut ? ` ${count(leftOut)} more events with less time are left out.` : "";
    this.heading.textContent = eventName(event);
    this.drawChart(scene, event);
    this.table.draw(events, `${count(events.length + (leftOut ?? 0))} events, since the start.${more}`);
  }

  sort(): void {
    this.table.sortNext();
  }

  step(by: number): void {
    this.metric.step(by);
  }

  private drawChart(scene: Scene, event: MpiEvent): void {
    const name = this.metric.value as MetricName;
    const metrics = scene.rounds.map((round) => this.of(round)?.[name] ?? null);
    const isRate = this.form.value === "rate";
    const lines = isRate ? rates(scene, metrics) : totals(metrics);
    const now = event[name];
    const description = `${eventName(event)}, ${metricName(name)} per rank over time: mean ${byMetric(name, now.mean)}, from ${byMetric(name, now.min)} on rank ${now.min_rank} to ${byMetric(name, now.max)} on rank ${now.max_rank}`;
    this.chart.draw(
      {
        times: times(scene),
        lines,
        band: isRate ? undefined : [1, 2],
        bandColour: `${kind(0)}40`,
        format: (value) => byMetric(name, value) + (isRate ? (name === "time_ns" ? " per s" : "/s") : ""),
        marked: markedTime(scene),
      },
      description,
    );
  }

  private of(round: Round): MpiEvent | null {
    let found = this.found.get(round);
    if (!found) this.found.set(round, (found = new Map()));
    let event = found.get(this.chosen);
    if (event === undefined) {
      event = round.record.events.find((event) => keyOf(event) === this.chosen) ?? null;
      found.set(this.chosen, event);
    }
    return event;
  }
}

function timed(
  name: string,
  value: (event: MpiEvent) => number,
  text: (event: MpiEvent) => string,
  title?: string,
): { name: string; title?: string; value: (event: MpiEvent) => number; text: (event: MpiEvent) => string } {
  const isTimed = (event: MpiEvent): boolean => event.name !== UNTIMED;
  return { name, title, value: (event) => (isTimed(event) ? value(event) : -1), text: (event) => (isTimed(event) ? text(event) : "–") };
}

const deviation = (metric: Metric): string =>
  metric.standard_deviation === null ? "–" : nanoseconds(metric.standard_deviation);

function totals(metrics: (Metric | null)[]): Line[] {
  const spread = (metric: Metric): number => metric.standard_deviation ?? 0;
  const line = (of: (metric: Metric) => number): (number | null)[] => metrics.map((metric) => metric && of(metric));
  return [
    { label: "mean", colour: kind(0), values: line((metric) => metric.mean), width: 2.5 },
    { label: "mean + deviation", colour: `${kind(0)}90`, values: line((metric) => Math.min(metric.max, metric.mean + spread(metric))), width: 1 },
    { label: "mean − deviation", colour: `${kind(0)}90`, values: line((metric) => Math.max(metric.min, metric.mean - spread(metric))), width: 1 },
    { label: "largest", colour: kind(5), values: line((metric) => metric.max), dash: [6, 4], width: 1.5 },
    { label: "smallest", colour: kind(2), values: line((metric) => metric.min), dash: [2, 3], width: 1.5 },
  ];
}

function rates(scene: Scene, metrics: (Metric | null)[]): Line[] {
  const rate = metrics.map((metric, at) => {
    const before = at > 0 ? metrics[at - 1] : null;
    if (!metric || !before) return null;
    const seconds = scene.rounds[at].record.elapsed_s - scene.rounds[at - 1].record.elapsed_s;
    return seconds > 0 ? Math.max(0, metric.mean - before.mean) / seconds : null;
  });
  return [{ label: "mean", colour: kind(0), values: rate, width: 2 }];
}
