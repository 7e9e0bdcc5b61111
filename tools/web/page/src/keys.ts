// The keys of the page, and the window that lists them.

import { element } from "./element";

export interface Key {
  keys: string;
  text: string;
  matches: (event: KeyboardEvent) => boolean;
  act: (event: KeyboardEvent) => void;
}

const TYPED = new Set(["INPUT", "SELECT", "TEXTAREA"]);

export class Keys {
  readonly window = element("dialog", { "aria-label": "Keys" });

  constructor(private readonly keys: Key[]) {
    const rows = keys.map((key) => element("tr", {}, element("th", { scope: "row" }, key.keys), element("td", {}, key.text)));
    this.window.append(
      element("h2", {}, "Keys"),
      element("table", {}, element("tbody", {}, ...rows)),
      element("button", { type: "button", click: () => this.window.close() }, "Close (Escape)"),
    );
    document.addEventListener("keydown", (event) => this.press(event));
  }

  show(): void {
    if (this.window.open) this.window.close();
    else this.window.showModal();
  }

  private press(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || TYPED.has(target.tagName)) return;
    const key = this.keys.find((key) => key.matches(event));
    if (!key || (this.window.open && event.key !== "?")) return;
    event.preventDefault();
    key.act(event);
  }
}
