// The processes of the tree and what they carry: the front-end above, its children below it.

import { Boxes, type Box } from "../boxes";
import { isLight, ramp } from "../colour";
import { Choice, element, nothing } from "../element";
import { byMetric, count, printable, rankSet } from "../format";
import type { Process } from "../record";
import type { Page, Scene, View } from "../view";

const ROLES: Record<string, string> = { "front-end": "front-end", communication: "communication process", leaf: "leaf" };

export class TreeView implements View {
  readonly name = "tree";
  readonly title = "Tree";
  readonly root = element("section");
  private readonly load: Choice;
  private readonly boxes = new Boxes();
  private readonly note = element("p", { class: "quiet" });
  private readonly empty = nothing("The rounds do not tell the tree.", "A tree of more than 4,096 processes is not told process by process.");
  private readonly content: HTMLElement;

  constructor(page: Page) {
    this.load = new Choice("Coloured by", () => page.redraw());
    this.content = element("div", {}, element("h2", {}, "Processes of the tree"), element("div", { class: "tools" }, this.load.root), this.boxes.root, this.note);
    this.root.append(this.empty, this.content);
  }

  draw(scene: Scene): void {
    const round = scene.rounds[scene.at];
    const tree = round?.record.tree ?? [];
    this.empty.hidden = tree.length > 0;
    this.content.hidden = tree.length === 0;
    if (!round || tree.length === 0) return;
    const names = [...new Set(tree.flatMap((process) => Object.keys(process.load)))].sort();
    this.load.offer(names.map((name) => [name, printable(name.replaceAll("_", " "))]));
    const loads = tree.map((process) => process.load[this.load.value] ?? 0);
    const [low, high] = [Math.min(...loads), Math.max(...loads)];
    const children = new Map<number | null, Process[]>();
    const known = new Set(tree.map((process) => process.id));
    for (const process of tree) {
      const parent = process.parent !== null && known.has(process.parent) ? process.parent : null;
      children.set(parent, [...(children.get(parent) ?? []), process]);
    }
    const drawn = new Set<number>();
    const box = (process: Process): Box => {
      drawn.add(process.id);
      const below = (children.get(process.id) ?? []).filter((child) => !drawn.has(child.id)).map(box);
      const share = high > low ? ((process.load[this.load.value] ?? 0) - low) / (high - low) : 0;
      return {
        label: `${process.id} ${printable(process.host)}${process.is_lost ? " lost" : ""}`,
        facts: factsOf(process),
        colour: ramp(share),
        isLight: isLight(share),
        isMarked: process.is_lost,
        weight: Math.max(1, below.reduce((sum, child) => sum + child.weight, 0)),
        children: below,
      };
    };
    const lost = tree.filter((process) => process.is_lost).length;
    const leftOut = round.left_out["processes"] ?? 0;
    const more = leftOut > 0 ? `, of which the ${count(tree.length)} nearest to the front-end are drawn` : "";
    const scale = names.length > 0 ? ` Dark is ${byMetric(this.load.value, low)}, bright is ${byMetric(this.load.value, high)}.` : "";
    this.note.textContent = `${count(tree.length + leftOut)} processes${more}${lost > 0 ? `, ${lost} lost (striped)` : ""}.${scale}`;
    this.boxes.draw((children.get(null) ?? []).map(box), this.note.textContent);
  }

  step(by: number): void {
    this.load.step(by);
  }
}

function factsOf(process: Process): string[] {
  const facts = [`Process ${process.id}: ${ROLES[process.role] ?? printable(process.role)} on ${printable(process.host)}${process.is_lost ? ", lost" : ""}`];
  if (process.ranks) facts.push(`ranks ${rankSet(process.ranks)}`);
  for (const [name, value] of Object.entries(process.load)) facts.push(`${printable(name.replaceAll("_", " "))}: ${byMetric(name, value)}`);
  return facts;
}
