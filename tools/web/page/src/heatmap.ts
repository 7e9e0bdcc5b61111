// A heat map: rounds from left to right, bins from bottom to top, an amount as a colour. Drawn at
// the resolution of the screen, however many rounds and bins there are.

import { RAMP, css, ramp } from "./colour";
import { element } from "./element";
import { clock } from "./format";

export interface Columns {
  times: number[];
  // How many bins the highest column has.
  bins: number;
  value: (column: number, bin: number) => number | null;
  // The names of both ends of the amounts, and an amount as text.
  low: number;
  high: number;
  format: (value: number) => string;
  // What stands at the height of a bin's lower edge.
  edge: (bin: number) => string;
  cell: (column: number, bin: number) => string;
  marked: number | null;
}

const LEFT = 84;
const BOTTOM = 24;
const TOP = 6;
const LABEL_EVERY = 48;

export class HeatMap {
  readonly root: HTMLElement;
  private readonly canvas = element("canvas", { tabindex: 0, role: "img" });
  private readonly scale = element("div", { class: "scale", "aria-hidden": "true" });
  private readonly tip = element("output", { class: "tip", "aria-live": "off" });
  private columns: Columns | null = null;
  private at: [number, number] | null = null;
  private image = new ImageData(1, 1);

  constructor(
    private readonly picked: (column: number, bin: number) => void,
    private readonly height = 340,
  ) {
    this.root = element("div", { class: "heatmap" }, this.canvas, this.scale, this.tip);
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("mouseleave", () => this.show(null));
    this.canvas.addEventListener("click", () => this.at && this.picked(...this.at));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.columns && this.paint(this.columns)).observe(this.root);
  }

  draw(columns: Columns, description: string): void {
    this.columns = columns;
    this.canvas.setAttribute("aria-label", description);
    this.paint(columns);
    const stops = Array.from({ length: 11 }, (_, at) => ramp(at / 10)).join(",");
    const bar = element("span", { class: "bar" });
    bar.style.background = `linear-gradient(to right,${stops})`;
    this.scale.replaceChildren(columns.format(columns.low), bar, columns.format(columns.high));
    if (this.at) this.show(this.at);
  }

  private paint(columns: Columns): void {
    const ratio = devicePixelRatio;
    const width = Math.max(260, this.root.clientWidth || 800);
    const canvas = this.canvas;
    if (canvas.width !== Math.round(width * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(this.height * ratio);
      canvas.style.height = `${this.height}px`;
    }
    const context = canvas.getContext("2d");
    if (context === null) return;
    context.clearRect(0, 0, canvas.width, canvas.height);
    const inner = { width: canvas.width - Math.round(LEFT * ratio), height: canvas.height - Math.round((BOTTOM + TOP) * ratio) };
    this.cells(columns, inner);
    context.putImageData(this.image, Math.round(LEFT * ratio), Math.round(TOP * ratio));
    this.labels(context, columns, inner, ratio);
  }

  private cells(columns: Columns, inner: { width: number; height: number }): void {
    const { times, bins, low, high } = columns;
    if (this.image.width !== inner.width || this.image.height !== inner.height) this.image = new ImageData(inner.width, inner.height);
    const pixels = this.image.data;
    pixels.fill(0);
    const range = high > low ? high - low : 1;
    const colours = new Int16Array(bins);
    for (let column = 0; column < times.length; column++) {
      const left = Math.floor((column * inner.width) / times.length);
      const right = Math.floor(((column + 1) * inner.width) / times.length);
      if (right === left) continue;
      for (let bin = 0; bin < bins; bin++) {
        const value = columns.value(column, bin);
        colours[bin] = value === null ? -1 : Math.round(255 * Math.min(1, Math.max(0, (value - low) / range)));
      }
      for (let y = 0; y < inner.height; y++) {
        const step = colours[bins - 1 - Math.floor((y * bins) / inner.height)];
        if (step < 0) continue;
        for (let x = left; x < right; x++) {
          const pixel = 4 * (y * inner.width + x);
          pixels[pixel] = RAMP[3 * step];
          pixels[pixel + 1] = RAMP[3 * step + 1];
          pixels[pixel + 2] = RAMP[3 * step + 2];
          pixels[pixel + 3] = 255;
        }
      }
    }
  }

  private labels(context: CanvasRenderingContext2D, columns: Columns, inner: { width: number; height: number }, ratio: number): void {
    const { times, bins } = columns;
    context.save();
    context.scale(ratio, ratio);
    context.fillStyle = css("--quiet");
    context.font = `12px ${css("--font")}`;
    const [width, height] = [inner.width / ratio, inner.height / ratio];
    context.textAlign = "right";
    context.textBaseline = "middle";
    const labels = Math.max(1, Math.min(bins, Math.floor(height / LABEL_EVERY)));
    for (let at = 0; at <= labels; at++) {
      const bin = Math.round((at * bins) / labels);
      const y = TOP + height - (bin * height) / bins;
      context.fillText(columns.edge(bin), LEFT - 8, Math.min(TOP + height - 4, Math.max(TOP + 6, y)));
    }
    context.textBaseline = "alphabetic";
    const every = Math.max(1, Math.ceil(times.length / Math.max(1, Math.floor(width / 110))));
    for (let column = 0; column < times.length; column += every) {
      context.textAlign = column === 0 ? "left" : "center";
      context.fillText(clock(times[column]), LEFT + (column * width) / times.length, TOP + height + 16);
    }
    if (columns.marked !== null) {
      const x = LEFT + ((columns.marked + 0.5) * width) / times.length;
      context.strokeStyle = "#fff";
      context.lineWidth = 3;
      context.strokeRect(x, TOP, 0, height);
      context.strokeStyle = "#000";
      context.lineWidth = 1;
      context.strokeRect(x, TOP, 0, height);
    }
    context.restore();
  }

  private point(event: MouseEvent): void {
    const columns = this.columns;
    if (!columns) return;
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left - LEFT) * columns.times.length) / (box.width - LEFT));
    const share = 1 - (event.clientY - box.top - TOP) / (this.height - BOTTOM - TOP);
    const bin = Math.floor(share * columns.bins);
    const isIn = column >= 0 && column < columns.times.length && bin >= 0 && bin < columns.bins;
    this.show(isIn ? [column, bin] : null);
  }

  private key(event: KeyboardEvent): void {
    const columns = this.columns;
    if (!columns || columns.times.length === 0) return;
    const [column, bin] = this.at ?? [columns.times.length - 1, 0];
    const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (event.key === "Enter" && this.at) this.picked(...this.at);
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const within = (value: number, end: number): number => Math.min(end - 1, Math.max(0, value));
    this.show([within(column + step[0], columns.times.length), within(bin + step[1], columns.bins)]);
  }

  private show(at: [number, number] | null): void {
    const columns = this.columns;
    this.at = at && columns && at[0] < columns.times.length && at[1] < columns.bins ? at : null;
    this.tip.textContent = this.at && columns ? `${clock(columns.times[this.at[0]])}: ${columns.cell(...this.at)}` : "\u00a0";
  }
}
