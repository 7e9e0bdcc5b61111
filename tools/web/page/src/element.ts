// Elements with text in them. Text is only ever set as text, so that no name becomes markup.

type Child = Node | string | null | undefined | false;
type Properties = Record<string, string | number | boolean | ((event: never) => void) | undefined>;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") made.addEventListener(name, value as unknown as EventListener);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== undefined && value !== false) made.setAttribute(name, String(value));
  }
  fill(made, ...children);
  return made;
}

export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...children.filter((child): child is Node | string => Boolean(child)));
}

// A choice among words. It keeps what was chosen as long as that is among them.
export class Choice {
  readonly root: HTMLLabelElement;
  private readonly select: HTMLSelectElement;
  private words = "";

  constructor(label: string, changed: () => void) {
    this.select = element("select", { change: changed });
    this.root = element("label", { class: "choice" }, `${label} `, this.select);
  }

  get value(): string {
    return this.select.value;
  }

  set value(value: string) {
    this.select.value = value;
  }

  offer(options: [string, string][]): void {
    const words = JSON.stringify(options);
    if (words === this.words) return;
    this.words = words;
    const before = this.select.value;
    fill(this.select, ...options.map(([value, text]) => element("option", { value }, text)));
    if (options.some(([value]) => value === before)) this.select.value = before;
    this.root.hidden = options.length === 0;
  }

  step(by: number): void {
    const { options, selectedIndex } = this.select;
    if (options.length === 0) return;
    this.select.selectedIndex = (selectedIndex + by + options.length) % options.length;
    this.select.dispatchEvent(new Event("change"));
  }
}

// What stands in the place of a view that has no data: which option would give it.
export function nothing(what: string, how: string): HTMLElement {
  return element("div", { class: "nothing", role: "note" }, element("p", {}, what), element("p", {}, how));
}
