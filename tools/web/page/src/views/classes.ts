// Functional classes over time: how many ranks each has, and by how much they reduce what is sent.

import { Chart, type Line } from "../chart";
import { kind } from "../colour";
import { Choice, element, nothing } from "../element";
import { count, nanoseconds, printable, rankSet } from "../format";
import type { Classification, RankClass } from "../record";
import { Table } from "../table";
import { type Page, type Scene, type View, markedTime, times } from "../view";

// As many as there are colours, with one for all others.
const LINES_MAX = 8;

export class ClassesView implements View {
  readonly name = "classes";
  readonly title = "Classes";
  readonly root = element("section");
  private readonly scheme: Choice;
  private readonly sizes: Chart;
  private readonly factors: Chart;
  private readonly table: Table<RankClass>;
  private readonly empty = nothing(
    "The ranks are not classified in these rounds.",
    "Start with --classes SCHEME: all, mpi, regex:EXPRESSION or depth:N.",
  );
  private readonly content: HTMLElement;

  constructor(page: Page) {
    this.scheme = new Choice("Scheme", () => page.redraw());
    this.sizes = new Chart((time) => page.look(time), 240);
    this.factors = new Chart((time) => page.look(time), 240);
    this.table = new Table<RankClass>(
      [
        { name: "class", value: (one) => className(one), text: (one) => className(one), isText: true },
        { name: "ranks", value: (one) => one.size, text: (one) => count(one.size) },
        { name: "members", value: (one) => one.ranks, text: (one) => rankSet(one.ranks), isText: true },
        { name: "time per rank, mean", title: "sum over its events", value: timeOf, text: (one) => nanoseconds(timeOf(one)) },
        { name: "largest event", value: largest, text: largest, isText: true },
        { name: "chosen events", value: (one) => one.names.length, text: (one) => one.names.slice(0, 4).map(printable).join(", ") + (one.names.length > 4 ? ", …" : ""), isText: true },
      ],
      1,
      (one) => String(one.id),
    );
    this.content = element(
      "div",
      {},
      element("div", { class: "tools" }, this.scheme.root),
      element(
        "div",
        { class: "pair" },
        element("div", {}, element("h2", {}, "Ranks of each class"), this.sizes.root),
        element("div", {}, element("h2", {}, "Reduction factor"), this.factors.root),
      ),
      this.table.root,
    );
    this.root.append(this.empty, this.content);
  }

  draw(scene: Scene): void {
    const here = scene.rounds[scene.at]?.record.classifications ?? [];
    this.empty.hidden = here.length > 0;
    this.content.hidden = here.length === 0;
    if (here.length === 0) return;
    this.scheme.offer(here.map((one) => [one.scheme, printable(one.scheme)]));
    const now = here.find((one) => one.scheme === this.scheme.value) ?? here[0];
    const all = scene.rounds.map((round) => round.record.classifications.find((one) => one.scheme === now.scheme) ?? null);
    const common = { times: times(scene), marked: markedTime(scene) };
    const more = now.left_out > 0 ? `, ${count(now.left_out)} smaller ones are left out` : "";
    const told = `${count(now.classes.length + now.left_out)} classes${more}`;
    this.sizes.draw({ ...common, lines: sizes(all, now), format: count }, `Ranks of each class over time: ${told}`);
    const factor = (of: (one: Classification) => number): (number | null)[] => all.map((one) => one && of(one));
    this.factors.draw(
      {
        ...common,
        lines: [
          { label: "in each round", colour: kind(0), values: factor((one) => one.reduction_factor), width: 1.5 },
          { label: "over all rounds", colour: kind(1), values: factor((one) => one.cumulated_factor), dash: [8, 3], width: 2.5 },
        ],
        format: (value) => `${value >= 100 ? Math.round(value) : value.toFixed(1)} ×`,
      },
      `Reduction factor over time: ${now.reduction_factor.toFixed(1)} in this round, ${now.cumulated_factor.toFixed(1)} over all rounds`,
    );
    this.table.draw(now.classes, `${told}; what is sent up is ${now.reduction_factor.toFixed(1)} times smaller than the ranks' own profiles in this round, ${now.cumulated_factor.toFixed(1)} times over all rounds`);
  }

  sort(): void {
    this.table.sortNext();
  }

  step(by: number): void {
    this.scheme.step(by);
  }
}

const className = (one: RankClass): string => `class ${one.id.toString(16).slice(-6)}`;
const timeOf = (one: RankClass): number => one.events.reduce((sum, event) => sum + event.time_ns.mean, 0);

function largest(one: RankClass): string {
  if (one.events.length === 0) return "–";
  return printable(one.events.reduce((most, event) => (event.time_ns.sum > most.time_ns.sum ? event : most)).name);
}

function sizes(all: (Classification | null)[], now: Classification): Line[] {
  const shown = now.classes.slice(0, LINES_MAX - 1);
  const sizeOf = (one: Classification | null, id: number): number | null =>
    one && (one.classes.find((other) => other.id === id)?.size ?? 0);
  const lines = shown.map((one, at) => ({
    label: className(one),
    colour: kind(at),
    values: all.map((other) => sizeOf(other, one.id)),
    dash: at % 2 === 1 ? [8, 3] : undefined,
    width: 2,
  }));
  if (now.classes.length <= shown.length) return lines;
  const ids = new Set(shown.map((one) => one.id));
  const others = all.map((one) => one && one.classes.filter((other) => !ids.has(other.id)).reduce((sum, other) => sum + other.size, 0));
  return [...lines, { label: "all others", colour: kind(LINES_MAX - 1), values: others, dash: [2, 3], width: 2 }];
}
