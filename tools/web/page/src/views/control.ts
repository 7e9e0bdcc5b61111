// Control of what the ranks do: interval, groups of metrics, which ranks, and a round at once.

import { element, fill, nothing } from "../element";
import { order } from "../feed";
import { byMetric, printable, rankSet } from "../format";
import type { Settings } from "../record";
import type { Scene, View } from "../view";

export class ControlView implements View {
  readonly name = "control";
  readonly title = "Control";
  readonly root = element("section");
  private readonly interval = element("input", { type: "number", min: 0.01, max: 3600, step: "any", required: true });
  private readonly ranks = element("input", { type: "text", placeholder: "all, or 0-3,7", pattern: "[0-9,\\- ]*" });
  private readonly groups = element("div", { role: "group", "aria-label": "Groups of metrics" });
  private readonly answer = element("p", { role: "status" });
  private readonly facts = element("ul", { class: "quiet" });
  private readonly empty = nothing("Nothing can be changed here.", "A program that runs under 'sapwood mpi --page' takes orders as long as it runs; a replay takes none.");
  private readonly form: HTMLFormElement;
  private shownChange = -1;
  private shownGroups = "";

  constructor() {
    const flush = element("button", { type: "button", click: () => void this.send({ flush: true }) }, "A round at once");
    this.form = element(
      "form",
      {
        submit: (event: Event) => {
          event.preventDefault();
          void this.send(this.wanted());
        },
      },
      element("label", {}, element("span", {}, "Interval in seconds"), this.interval),
      element("label", {}, element("span", {}, "Ranks that obey"), this.ranks),
      element("div", { class: "label" }, element("span", {}, "Groups of metrics"), this.groups),
      element("div", { class: "buttons" }, element("button", { type: "submit", class: "main" }, "Apply"), flush),
      this.answer,
      this.facts,
    );
    this.root.append(this.empty, this.form);
  }

  draw(scene: Scene): void {
    const canAct = scene.about !== null && scene.about.has_control && scene.about.end === null;
    this.empty.hidden = canAct;
    this.form.hidden = !canAct;
    const settings = scene.timed.at(-1)?.record.settings ?? null;
    if (!canAct || !settings) return;
    // What is being typed stays until the ranks have other settings.
    if (settings.change !== this.shownChange) this.show(settings);
    const facts = [`Settings number ${settings.change}: ${settings.interval_s > 0 ? `a round every ${settings.interval_s} s` : "rounds at points of the program"}.`, `Ranks that have taken them over: ${rankSet(settings.obeyed)}.`];
    for (const [name, metric] of Object.entries(settings.numbers)) {
      facts.push(`${printable(name.replaceAll("_", " "))}: ${byMetric(name, metric.mean)} per rank, mean; ${byMetric(name, metric.max)} at most, on rank ${metric.max_rank}`);
    }
    fill(this.facts, ...facts.map((fact) => element("li", {}, fact)));
  }

  private show(settings: Settings): void {
    this.shownChange = settings.change;
    this.interval.value = String(settings.interval_s);
    this.ranks.value = settings.ranks;
    const known = settings.groups_known.length > 0 ? settings.groups_known : settings.groups;
    const groups = JSON.stringify(known);
    if (groups !== this.shownGroups) {
      this.shownGroups = groups;
      fill(this.groups, ...known.map((name) => element("label", { class: "check" }, element("input", { type: "checkbox", value: name }), printable(name))));
    }
    for (const box of this.boxes()) box.checked = settings.groups.includes(box.value);
  }

  private boxes(): HTMLInputElement[] {
    return [...this.groups.querySelectorAll("input")];
  }

  private wanted(): Record<string, unknown> {
    const groups = this.boxes().filter((box) => box.checked).map((box) => box.value);
    const what: Record<string, unknown> = { ranks: this.ranks.value.replaceAll(" ", "") };
    if (this.interval.value !== "") what.interval_s = Number(this.interval.value);
    if (this.boxes().length > 0) what.groups = groups;
    return what;
  }

  private async send(what: Record<string, unknown>): Promise<void> {
    this.answer.textContent = "The order is being given.";
    const { isTaken, text } = await order(what);
    this.answer.textContent = isTaken ? text : `Not done: ${text}`;
    this.answer.classList.toggle("bad", !isTaken);
  }
}
