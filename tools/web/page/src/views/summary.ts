// What is read first: how the time was spent, how well it was shared, which ranks are missing.

import { Chart } from "../chart";
import { kind } from "../colour";
import { element, fill, nothing } from "../element";
import { count, nanoseconds, percent, printable, rankSet, ranksNamed, byMetric, metricName, clock, scoreText } from "../format";
import type { Death, Outlier, RoundRecord, Settings } from "../record";
import { Table } from "../table";
import { type Page, type Scene, type View, markedTime, times } from "../view";

// From this score on a value deviates, as in the report.
const DEVIATES = 3.5;

// Why there is no division of time: it comes later, or a change of the settings has ended it.
const UNMEASURED: [string, string] = ["No time has been measured yet.", "Ranks tell it from their first round after MPI_Init on."];
const LEFT_OUT: [string, string] = [
  "The share of MPI is not known any more.",
  "The settings of this run were changed, and left out times or calls: what a rank has not counted cannot be told from computing. Start the program again to have it.",
];

// Groups without which the time is divided all the same.
const UNTIMED = new Set(["bytes", "activities"]);

function leavesOut(settings: Settings | null): boolean {
  if (!settings) return false;
  return settings.ranks !== "" || settings.groups_known.some((group) => !UNTIMED.has(group) && !settings.groups.includes(group));
}

export class SummaryView implements View {
  readonly name = "summary";
  readonly title = "Summary";
  readonly root = element("section");
  private readonly share: Chart;
  private readonly efficiency: Chart;
  private readonly charts: HTMLElement;
  private readonly empty = nothing(...UNMEASURED);
  private readonly facts = element("div", { class: "facts-text" });
  private readonly outliers: Table<Outlier>;
  private readonly deaths: Table<Death>;

  constructor(page: Page) {
    this.share = new Chart((time) => page.look(time), 240);
    this.efficiency = new Chart((time) => page.look(time), 240);
    this.charts = element(
      "div",
      { class: "pair" },
      element("div", {}, element("h2", {}, "Share of MPI in the wall time, since the start"), this.share.root),
      element("div", {}, element("h2", {}, "Efficiencies after POP, since the start"), this.efficiency.root),
    );
    this.outliers = new Table<Outlier>(
      [
        { name: "rank or host", value: whose, text: whose, isText: true },
        { name: "event", value: (outlier) => outlier.event, text: (outlier) => printable(outlier.event), isText: true },
        { name: "metric", value: (outlier) => outlier.metric, text: (outlier) => metricName(outlier.metric), isText: true },
        { name: "value", value: (outlier) => outlier.value, text: (outlier) => byMetric(outlier.metric, outlier.value) },
        { name: "median", value: (outlier) => outlier.median, text: (outlier) => byMetric(outlier.metric, outlier.median) },
        { name: "score", title: "distance from the median in robust standard deviations", value: (outlier) => Math.abs(outlier.score), text: (outlier) => scoreText(outlier.score) },
      ],
      5,
      (outlier) => JSON.stringify([outlier.rank, outlier.host, outlier.event, outlier.metric]),
    );
    this.deaths = new Table<Death>(
      [
        { name: "when", value: (death) => -death.elapsed_s, text: (death) => clock(death.elapsed_s), isText: true },
        { name: "ranks", value: (death) => death.ranks, text: (death) => rankSet(death.ranks), isText: true },
        { name: "cause", value: (death) => death.cause, text: (death) => printable(death.cause) + (death.is_first ? " (the first)" : ""), isText: true },
        { name: "inside", value: (death) => death.inside, text: (death) => (death.inside ? printable(death.inside) : "–"), isText: true },
      ],
      0,
      (death) => `${death.ranks} ${death.elapsed_s}`,
    );
    this.root.append(this.empty, this.charts, this.facts, this.deaths.root, this.outliers.root);
  }

  draw(scene: Scene): void {
    const record = scene.rounds[scene.at]?.record;
    const time = record?.time ?? null;
    this.empty.hidden = time !== null;
    const hasLeftOut = time === null && scene.timed.some((round) => round.record.elapsed_s <= (record?.elapsed_s ?? 0) && leavesOut(round.record.settings));
    const [what, how] = hasLeftOut ? LEFT_OUT : UNMEASURED;
    const [first, second] = this.empty.children;
    [first.textContent, second.textContent] = [what, how];
    this.charts.hidden = time === null;
    const far = (record?.outliers ?? []).filter((outlier) => Math.abs(outlier.score) >= DEVIATES);
    this.outliers.root.hidden = far.length === 0;
    this.deaths.root.hidden = !record?.deaths.length;
    if (!record) return fill(this.facts);
    fill(this.facts, ...facts(record).map((fact) => element("p", {}, fact)));
    if (far.length) this.outliers.draw(far, "Ranks and hosts that deviate by a robust score of 3.5 or more");
    if (record.deaths.length) this.deaths.draw(record.deaths, "Ranks that did not end in order");
    if (time) this.drawCharts(scene);
  }

  sort(): void {
    this.outliers.sortNext();
  }

  private drawCharts(scene: Scene): void {
    const all = scene.rounds.map((round) => round.record.time);
    const line = (of: (time: NonNullable<(typeof all)[number]>) => number | null): (number | null)[] => all.map((time) => time && of(time));
    const now = all[scene.at];
    const shares = (of: "mean" | "min" | "max"): (number | null)[] => line((time) => time.mpi_ppm[of] / 1e6);
    const common = { times: times(scene), format: percent, marked: markedTime(scene) };
    this.share.draw(
      {
        ...common,
        lines: [
          { label: "mean", colour: kind(0), values: shares("mean"), width: 2.5 },
          { label: "largest", colour: kind(5), values: shares("max"), dash: [6, 4], width: 1.5 },
          { label: "smallest", colour: kind(2), values: shares("min"), dash: [2, 3], width: 1.5 },
        ],
        band: [1, 2],
        bandColour: `${kind(0)}28`,
      },
      `Share of MPI over time; now ${percent((now?.mpi_ppm.mean ?? 0) / 1e6)} as a mean over the ranks`,
    );
    this.efficiency.draw(
      {
        ...common,
        lines: [
          { label: "parallel", colour: kind(0), values: line((time) => time.efficiency?.parallel ?? null), width: 2.5 },
          { label: "load balance", colour: kind(1), values: line((time) => time.efficiency?.load_balance ?? null), dash: [8, 3], width: 1.5 },
          { label: "communication", colour: kind(2), values: line((time) => time.efficiency?.communication ?? null), dash: [2, 3], width: 1.5 },
        ],
      },
      `Efficiencies over time; parallel efficiency is now ${percent(now?.efficiency?.parallel ?? 0)}`,
    );
  }
}

const whose = (outlier: Outlier): string =>
  outlier.rank === null ? `host ${printable(outlier.host)}` : `rank ${outlier.rank}${outlier.host ? ` on ${printable(outlier.host)}` : ""}`;

function facts(record: RoundRecord): string[] {
  const lines: string[] = [];
  for (const loss of record.missing) lines.push(`Missing ${ranksNamed(loss.ranks)}: ${printable(loss.reason)}`);
  if (record.states.lost) lines.push(`Lost ${ranksNamed(record.states.lost)}: ended without MPI_Finalize or exit; their last counts are shown.`);
  if (record.states.exited) lines.push(`Exited without MPI_Finalize: ${ranksNamed(record.states.exited)}.`);
  if (record.dropped > 0) lines.push(`${count(record.dropped)} events were not counted: no room, or regions that do not match.`);
  if (record.unreadable > 0) lines.push(`${count(record.unreadable)} slots could not be read: the program wrote over its table.`);
  if (record.time) lines.push(`Wall time per rank ${nanoseconds(record.time.wall_ns.mean)}, of this ${nanoseconds(record.time.mpi_ns.mean)} inside of MPI and ${nanoseconds(record.time.compute_ns.mean)} outside (means over ranks).`);
  return lines;
}
