// A chart over time: lines, and a band between two of them. The drawing is uPlot's.

import uPlot from "uplot";
import { css } from "./colour";
import { clock } from "./format";

export interface Line {
  label: string;
  colour: string;
  values: (number | null)[];
  dash?: number[];
  width?: number;
  // A line that only bounds the band.
  isEdge?: boolean;
}

export interface Drawing {
  times: number[];
  lines: Line[];
  // Places of the upper and the lower line of a band.
  band?: [number, number];
  bandColour?: string;
  format: (value: number) => string;
  // The time that is looked at, if it is not the latest.
  marked: number | null;
  alert?: string;
}

const HEIGHT = 300;

export class Chart {
  readonly root: HTMLElement;
  private plot: uPlot | null = null;
  private form = "";
  private drawing: Drawing | null = null;

  constructor(private readonly picked: (time: number) => void, private readonly height = HEIGHT) {
    this.root = document.createElement("div");
    this.root.className = "chart";
    this.root.setAttribute("role", "img");
    new ResizeObserver(() => this.resize()).observe(this.root);
  }

  draw(drawing: Drawing, description: string): void {
    this.drawing = drawing;
    this.root.setAttribute("aria-label", description);
    const data = [drawing.times, ...drawing.lines.map((line) => line.values)] as uPlot.AlignedData;
    const form = JSON.stringify([
      drawing.lines.map((line) => [line.label, line.colour, line.dash, line.width]),
      drawing.band,
      drawing.bandColour,
      css("--text"),
    ]);
    if (this.plot !== null && form === this.form) {
      this.plot.setData(data);
    } else {
      this.make(form, drawing, data);
    }
    const plot = this.plot;
    // Without a pointer in the chart, its legend tells the round that is looked at.
    if (plot && plot.cursor.idx == null) plot.setLegend({ idx: drawing.marked === null ? drawing.times.length - 1 : plot.valToIdx(drawing.marked) }, false);
  }

  private make(form: string, drawing: Drawing, data: uPlot.AlignedData): void {
    this.form = form;
    this.plot?.destroy();
    this.plot = new uPlot(this.options(drawing), data, this.root);
  }

  private options(drawing: Drawing): uPlot.Options {
    const axis = { stroke: css("--quiet"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 } };
    const options: uPlot.Options = {
      width: this.width(),
      height: this.height,
      cursor: { drag: { x: true, y: false }, points: { size: 6 } },
      legend: { live: true },
      scales: { x: { time: false }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.06 : 1] } },
      axes: [
        { ...axis, values: (_, values) => values.map((value) => clock(value)) },
        { ...axis, size: 76, values: (_, values) => values.map((value) => this.drawing?.format(value) ?? "") },
      ],
      series: [
        { label: "time", value: (_, value) => (value === null ? "–" : clock(value)) },
        ...drawing.lines.map((line) => ({
          label: line.label,
          stroke: line.colour,
          width: line.width ?? 2,
          dash: line.dash,
          spanGaps: false,
          points: { show: false },
          value: (_: uPlot, value: number | null) => (value === null ? "–" : (this.drawing?.format(value) ?? "")),
        })),
      ],
      hooks: { draw: [(plot) => this.mark(plot)], ready: [(plot) => this.listen(plot)] },
    };
    if (drawing.band) options.bands = [{ series: [drawing.band[0] + 1, drawing.band[1] + 1], fill: drawing.bandColour }];
    return options;
  }

  // A stroke at the time that is looked at.
  private mark(plot: uPlot): void {
    const marked = this.drawing?.marked;
    if (marked === null || marked === undefined) return;
    const at = plot.valToPos(marked, "x", true);
    const { ctx, bbox } = plot;
    if (at < bbox.left || at > bbox.left + bbox.width) return;
    ctx.save();
    ctx.strokeStyle = css("--text");
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  }

  private listen(plot: uPlot): void {
    let from = 0;
    plot.over.addEventListener("mousedown", (event) => (from = event.clientX));
    plot.over.addEventListener("mouseup", (event) => {
      if (Math.abs(event.clientX - from) > 3) return;
      const box = plot.over.getBoundingClientRect();
      this.picked(plot.posToVal(event.clientX - box.left, "x"));
    });
  }

  private width(): number {
    return Math.max(260, this.root.clientWidth || 800);
  }

  private resize(): void {
    if (this.plot && this.width() !== this.plot.width) this.plot.setSize({ width: this.width(), height: this.height });
  }
}
