// Call stacks of the ranks, merged, as a flame graph that hangs from main.

import { Boxes, type Box } from "../boxes";
import { element, fill, nothing } from "../element";
import { clock, count, percent, printable, rankSet } from "../format";
import type { StackFrame } from "../record";
import type { Scene, View } from "../view";

// Warm colours that black letters are read on, by the function's name: equal names look alike.
const FLAMES = ["#f6c567", "#f2a65a", "#f7d98b", "#eb9c6a", "#f0b27a", "#e8c07d", "#f4bf94"];
const FRAMES_MAX = 5000;

export class StacksView implements View {
  readonly name = "stacks";
  readonly title = "Stacks";
  readonly root = element("section");
  private readonly boxes = new Boxes();
  private readonly heading = element("h2");
  private readonly missing = element("ul", { class: "quiet" });
  private readonly empty = nothing("No call stacks were taken.", "Start with --stacks TIME to take them from time to time, or run 'sapwood stacks' on the job.");
  private readonly content: HTMLElement;

  constructor() {
    this.content = element("div", {}, this.heading, this.boxes.root, this.missing);
    this.root.append(this.empty, this.content);
  }

  draw(scene: Scene): void {
    const until = scene.rounds[scene.at]?.record.elapsed_s ?? 0;
    let stacks = null;
    for (const { record } of scene.timed) if (record.stacks !== null && record.elapsed_s <= until) stacks = record.stacks;
    this.empty.hidden = stacks !== null;
    this.content.hidden = stacks === null;
    if (!stacks) return;
    const total = stacks.roots.reduce((sum, root) => sum + root.count, 0);
    let frames = 0;
    const box = (frame: StackFrame): Box => {
      frames += 1;
      const name = printable(frame.name);
      const share = percent(frame.count / Math.max(1, total));
      return {
        label: name,
        facts: [name, `${count(frame.count)} of ${count(total)} samples (${share})`, `ranks ${rankSet(frame.ranks)}`],
        colour: FLAMES[hash(frame.name) % FLAMES.length],
        isLight: true,
        weight: frame.count,
        children: frames < FRAMES_MAX ? frame.children.map(box) : [],
      };
    };
    this.heading.textContent = `${count(total)} stacks, taken at ${clock(stacks.elapsed_s)}`;
    this.boxes.draw(stacks.roots.map(box), `Call stacks as a flame graph: ${this.heading.textContent}`);
    fill(this.missing, ...stacks.missing.map((loss) => element("li", {}, `No stack of ranks ${rankSet(loss.ranks)}: ${printable(loss.reason)}`)));
  }
}

function hash(text: string): number {
  let value = 7;
  for (let at = 0; at < text.length; at++) value = (Math.imul(value, 31) + text.charCodeAt(at)) >>> 0;
  return value;
}
