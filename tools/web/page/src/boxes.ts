// Boxes in rows, each below the one that it belongs to: the tree of processes, and stacks as a flame
// graph.

import { css } from "./colour";
import { element, fill } from "./element";

export interface Box {
  label: string;
  // What is told of it, line by line.
  facts: string[];
  colour: string;
  // Whether black letters are read on the colour.
  isLight: boolean;
  // Its share of the width among its neighbours.
  weight: number;
  isMarked?: boolean;
  children: Box[];
}

interface Placed {
  box: Box;
  left: number;
  right: number;
  row: number;
  parent: Placed | null;
}

const ROW = 26;
const LETTERS_FROM = 26;

export class Boxes {
  readonly root: HTMLElement;
  private readonly canvas = element("canvas", { tabindex: 0, role: "img" });
  private readonly facts = element("ul", { class: "facts", "aria-live": "polite" });
  private placed: Placed[] = [];
  private at = 0;
  private way: number[] = [];

  constructor() {
    this.root = element("div", { class: "boxes" }, this.canvas, this.facts);
    this.canvas.addEventListener("click", (event) => this.choose(this.under(event), true));
    this.canvas.addEventListener("mousemove", (event) => this.choose(this.under(event), false));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.paint()).observe(this.root);
  }

  draw(roots: Box[], description: string): void {
    this.canvas.setAttribute("aria-label", description);
    this.placed = [];
    const total = roots.reduce((sum, root) => sum + root.weight, 0);
    let left = 0;
    for (const root of roots) {
      const right = left + root.weight / Math.max(total, 1e-9);
      this.place({ box: root, left, right, row: 0, parent: null });
      left = right;
    }
    this.at = Math.max(0, this.find(this.way));
    this.paint();
    this.tell();
  }

  private place(placed: Placed): void {
    this.placed.push(placed);
    const { box, left, right, row } = placed;
    const below = box.children.reduce((sum, child) => sum + child.weight, 0);
    // What a box does by itself leaves room below it.
    const width = (right - left) / Math.max(box.weight, below, 1e-9);
    let at = left;
    for (const child of box.children) {
      const end = at + child.weight * width;
      this.place({ box: child, left: at, right: end, row: row + 1, parent: placed });
      at = end;
    }
  }

  // The same box in the next round: by the places of boxes on the way to it.
  private wayTo(at: number): number[] {
    const way: number[] = [];
    for (let placed: Placed | null = this.placed[at] ?? null; placed !== null; placed = placed.parent) {
      const place: Placed = placed;
      const siblings = place.parent ? place.parent.box.children : this.placed.filter((other) => other.parent === null).map((other) => other.box);
      way.unshift(siblings.indexOf(place.box));
    }
    return way;
  }

  private find(way: number[]): number {
    let parent: Placed | null = null;
    let found = -1;
    for (const step of way) {
      const siblings: Placed[] = this.placed.filter((placed) => placed.parent === parent);
      if (!siblings[step]) return found;
      parent = siblings[step];
      found = this.placed.indexOf(parent);
    }
    return found;
  }

  private paint(): void {
    const ratio = devicePixelRatio;
    const width = Math.max(260, this.root.clientWidth || 800);
    const rows = this.placed.reduce((most, placed) => Math.max(most, placed.row + 1), 1);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(rows * ROW * ratio);
    this.canvas.style.height = `${rows * ROW}px`;
    const context = this.canvas.getContext("2d");
    if (context === null) return;
    context.scale(ratio, ratio);
    context.font = `12px ${css("--font")}`;
    context.textBaseline = "middle";
    for (const [at, { box, left, right, row }] of this.placed.entries()) {
      const [x, y] = [left * width, row * ROW];
      const wide = Math.max(0.5, (right - left) * width - (right - left > 4 / width ? 1 : 0));
      context.fillStyle = box.colour;
      context.fillRect(x, y, wide, ROW - 2);
      if (box.isMarked) this.cross(context, x, y, wide);
      if (wide > LETTERS_FROM) {
        context.save();
        context.beginPath();
        context.rect(x, y, wide - 3, ROW);
        context.clip();
        context.fillStyle = box.isLight ? "#000" : "#fff";
        context.fillText(box.label, x + 5, y + ROW / 2 - 1);
        context.restore();
      }
      if (at === this.at) {
        context.strokeStyle = css("--text");
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + 1, Math.max(1, wide - 2), ROW - 4);
      }
    }
  }

  // Strokes across a box: seen without colours, too.
  private cross(context: CanvasRenderingContext2D, x: number, y: number, wide: number): void {
    context.save();
    context.beginPath();
    context.rect(x, y, wide, ROW - 2);
    context.clip();
    context.strokeStyle = css("--alert");
    context.lineWidth = 3;
    for (let at = x - ROW; at < x + wide; at += 9) {
      context.beginPath();
      context.moveTo(at, y + ROW);
      context.lineTo(at + ROW, y);
      context.stroke();
    }
    context.restore();
  }

  private under(event: MouseEvent): number {
    const box = this.canvas.getBoundingClientRect();
    const [share, row] = [(event.clientX - box.left) / box.width, Math.floor((event.clientY - box.top) / ROW)];
    return this.placed.findIndex((placed) => placed.row === row && placed.left <= share && share < placed.right);
  }

  private choose(at: number, isFocused: boolean): void {
    if (at < 0 || at === this.at) return;
    this.at = at;
    this.way = this.wayTo(at);
    if (isFocused) this.canvas.focus();
    this.paint();
    this.tell();
  }

  private key(event: KeyboardEvent): void {
    const here = this.placed[this.at];
    if (!here || !event.key.startsWith("Arrow")) return;
    event.preventDefault();
    event.stopPropagation();
    const neighbours = this.placed.filter((placed) => placed.row === here.row);
    const step = (by: number): Placed | undefined => neighbours[neighbours.indexOf(here) + by];
    const moves: Record<string, () => Placed | null | undefined> = {
      ArrowLeft: () => step(-1),
      ArrowRight: () => step(1),
      ArrowUp: () => here.parent,
      ArrowDown: () => this.placed.find((placed) => placed.parent === here),
    };
    const to = moves[event.key]?.();
    if (to) this.choose(this.placed.indexOf(to), true);
  }

  private tell(): void {
    const here = this.placed[this.at];
    fill(this.facts, ...(here?.box.facts ?? []).map((fact) => element("li", {}, fact)));
  }
}
