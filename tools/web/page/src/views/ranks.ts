// A number of every rank over time: rounds from left to right, ranks upwards, down to one rank.

import { Chart } from "../chart";
import { kind } from "../colour";
import { Choice, element, nothing } from "../element";
import { byMetric, count, metricName } from "../format";
import { HeatMap } from "../heatmap";
import type { RankValues } from "../record";
import { type Page, type Scene, type View, markedColumn, markedTime, times } from "../view";

export class RanksView implements View {
  readonly name = "ranks";
  readonly title = "Ranks";
  readonly root = element("section");
  private readonly metric: Choice;
  private readonly form: Choice;
  private readonly from = element("input", { type: "number", min: 0, value: 0 });
  private readonly to = element("input", { type: "number", min: 0, placeholder: "last" });
  private readonly map: HeatMap;
  private readonly chart: Chart;
  private readonly heading = element("h2");
  private readonly detail = element("h2");
  private chosen = 0;
  private first = 0;
  private shown: number[] = [];
  private readonly empty = nothing(
    "There is no number of each rank in these rounds.",
    "They come with the second round of a program whose ranks have started.",
  );
  private readonly content: HTMLElement;

  constructor(page: Page) {
    this.metric = new Choice("Metric", () => page.redraw());
    this.form = new Choice("Shown", () => page.redraw());
    this.form.offer([
      ["total", "since the start"],
      ["interval", "in each interval"],
    ]);
    this.from.addEventListener("change", () => page.redraw());
    this.to.addEventListener("change", () => page.redraw());
    this.map = new HeatMap((column, bin) => {
      this.chosen = this.first + bin;
      page.look(this.shown[column] ?? 0);
    });
    this.chart = new Chart((time) => page.look(time), 220);
    const tools = element(
      "div",
      { class: "tools" },
      this.metric.root,
      this.form.root,
      element("label", { class: "choice" }, "Ranks from ", this.from),
      element("label", { class: "choice" }, "to ", this.to),
    );
    this.content = element("div", {}, this.heading, tools, this.map.root, this.detail, this.chart.root);
    this.root.append(this.empty, this.content);
  }

  draw(scene: Scene): void {
    const here = scene.rounds[scene.at]?.record.rank_values ?? [];
    this.empty.hidden = here.length > 0;
    this.content.hidden = here.length === 0;
    if (here.length === 0) return;
    this.metric.offer(here.map((one) => [one.metric, metricName(one.metric)]));
    const now = here.find((one) => one.metric === this.metric.value) ?? here[0];
    const size = now.ranks_per_bin;
    const all = scene.rounds.map((round) => {
      const one = round.record.rank_values.find((other) => other.metric === now.metric);
      return one && one.ranks_per_bin === size ? one : null;
    });
    const isInterval = this.form.value === "interval" && !now.metric.endsWith("_ppm");
    const seconds = scene.rounds.map((round, at) => round.record.elapsed_s - (scene.rounds[at - 1]?.record.elapsed_s ?? 0));
    const value = (of: "mean" | "max", column: number, bin: number): number | null => {
      const own = all[column]?.[of][bin] ?? null;
      if (!isInterval || own === null) return own;
      const before = column > 0 ? (all[column - 1]?.[of][bin] ?? null) : null;
      return before === null ? null : Math.max(0, own - before) / Math.max(1e-9, seconds[column]);
    };
    const world = scene.rounds[scene.at].record.world_size;
    this.drawMap(scene, now, value, world, isInterval);
    this.drawChart(scene, now, value, world, isInterval);
  }

  step(by: number): void {
    this.metric.step(by);
  }

  private drawMap(scene: Scene, now: RankValues, value: Value, world: number, isInterval: boolean): void {
    const size = now.ranks_per_bin;
    const bins = now.mean.length;
    this.first = Math.min(bins - 1, Math.max(0, Math.floor(Number(this.from.value || 0) / size)));
    const last = this.to.value === "" ? bins - 1 : Math.min(bins - 1, Math.max(this.first, Math.floor(Number(this.to.value) / size)));
    const shown = last - this.first + 1;
    let [low, high] = [Infinity, -Infinity];
    for (let column = 0; column < scene.rounds.length; column++) {
      for (let bin = this.first; bin <= last; bin++) {
        const one = value("mean", column, bin);
        if (one === null) continue;
        if (one < low) low = one;
        if (one > high) high = one;
      }
    }
    if (low > high) [low, high] = [0, 1];
    this.shown = times(scene);
    const unit = isInterval ? " per second" : "";
    const bin = size > 1 ? `, means of ${count(size)} ranks each` : "";
    this.heading.textContent = `${metricName(now.metric)} of ${count(world)} ranks${bin}`;
    this.map.draw(
      {
        times: this.shown,
        bins: shown,
        value: (column, bin) => value("mean", column, this.first + bin),
        low,
        high,
        format: (amount) => byMetric(now.metric, amount) + unit,
        edge: (bin) => `rank ${Math.min(world, (this.first + bin) * size)}`,
        cell: (column, bin) => {
          const one = value("mean", column, this.first + bin);
          return `${ranksOf(this.first + bin, size, world)}: ${one === null ? "not covered" : byMetric(now.metric, one) + unit}`;
        },
        marked: markedColumn(scene),
      },
      `${this.heading.textContent} over time, from ${byMetric(now.metric, low)} to ${byMetric(now.metric, high)}${unit}`,
    );
  }

  private drawChart(scene: Scene, now: RankValues, value: Value, world: number, isInterval: boolean): void {
    this.chosen = Math.min(this.chosen, now.mean.length - 1);
    const size = now.ranks_per_bin;
    const columns = scene.rounds.map((_, column) => column);
    const lines = [{ label: "mean", colour: kind(0), values: columns.map((column) => value("mean", column, this.chosen)), width: 2 }];
    if (size > 1) lines.push({ label: "largest", colour: kind(5), values: columns.map((column) => value("max", column, this.chosen)), width: 1 });
    this.detail.textContent = `${ranksOf(this.chosen, size, world)} (choose others in the map)`;
    const format = (amount: number): string => byMetric(now.metric, amount) + (isInterval ? "/s" : "");
    this.chart.draw({ times: times(scene), lines, format, marked: markedTime(scene) }, `${metricName(now.metric)} of ${ranksOf(this.chosen, size, world)} over time`);
  }
}

type Value = (of: "mean" | "max", column: number, bin: number) => number | null;

function ranksOf(bin: number, size: number, world: number): string {
  const [first, last] = [bin * size, Math.min(world, (bin + 1) * size) - 1];
  return first === last ? `rank ${first}` : `ranks ${first}–${last}`;
}
