// A table that is sorted by a click, or the Enter key, on a column's name, and of which a row may be
// chosen.

import { element, fill } from "./element";

export interface Column<Row> {
  name: string;
  title?: string;
  // What rows are sorted by; text is sorted by its letters.
  value: (row: Row) => number | string;
  text: (row: Row) => string;
  isText?: boolean;
}

export class Table<Row> {
  readonly root: HTMLElement;
  private readonly head = element("tr");
  private readonly body = element("tbody");
  private readonly caption = element("caption");
  private rows: Row[] = [];
  private by: number;
  private isDescending = true;

  constructor(
    private readonly columns: Column<Row>[],
    by: number,
    private readonly key: (row: Row) => string,
    private readonly chosen?: (row: Row) => void,
    private readonly chosenKey?: () => string,
  ) {
    this.by = by;
    const table = element("table", {}, this.caption, element("thead", {}, this.head), this.body);
    this.root = element("div", { class: "table", tabindex: 0, role: "region", "aria-label": "table" }, table);
    this.drawHead();
  }

  draw(rows: Row[], caption: string): void {
    this.rows = rows;
    this.caption.textContent = caption;
    const column = this.columns[this.by];
    const order = (left: Row, right: Row): number => {
      const [a, b] = [column.value(left), column.value(right)];
      const difference = typeof a === "string" || typeof b === "string" ? String(b).localeCompare(String(a)) : b - a;
      return this.isDescending ? difference : -difference;
    };
    const sorted = [...rows].sort(order);
    const wanted = this.chosenKey?.();
    while (this.body.rows.length > sorted.length) this.body.lastElementChild?.remove();
    for (const [at, row] of sorted.entries()) {
      const key = this.key(row);
      const line = this.body.rows[at] ?? this.body.appendChild(this.line());
      line.dataset.key = key;
      if (this.chosen) line.setAttribute("aria-selected", String(key === wanted));
      for (const [place, { text }] of this.columns.entries()) {
        const shown = text(row);
        const cell = line.cells[place];
        if (cell.textContent !== shown) cell.textContent = shown;
      }
    }
  }

  sortNext(): void {
    this.sort((this.by + 1) % this.columns.length);
  }

  private line(): HTMLTableRowElement {
    const line = element("tr", {}, ...this.columns.map((column) => element("td", { class: column.isText ? "text" : "" })));
    if (this.chosen) {
      line.tabIndex = 0;
      const choose = (): void => {
        const row = this.rows.find((row) => this.key(row) === line.dataset.key);
        if (row) this.chosen?.(row);
      };
      line.addEventListener("click", choose);
      line.addEventListener("keydown", (event) => {
        if (event.key === "Enter") choose();
      });
    }
    return line;
  }

  private sort(by: number): void {
    this.isDescending = by === this.by ? !this.isDescending : true;
    this.by = by;
    this.drawHead();
    this.draw(this.rows, this.caption.textContent ?? "");
  }

  private drawHead(): void {
    const cell = (column: Column<Row>, at: number): HTMLElement => {
      const isSorted = at === this.by;
      const arrow = isSorted ? (this.isDescending ? " ▾" : " ▴") : "";
      const button = element("button", { type: "button", title: column.title, click: () => this.sort(at) }, column.name + arrow);
      const sorted = isSorted ? (this.isDescending ? "descending" : "ascending") : undefined;
      return element("th", { scope: "col", class: column.isText ? "text" : "", "aria-sort": sorted }, button);
    };
    fill(this.head, ...this.columns.map(cell));
  }
}
