// The page: head with what is read first, one view at a time, and the time that is looked at.

import "uplot/dist/uPlot.min.css";
import "./page.css";

import { Choice, element, fill } from "./element";
import { type Connection, follow } from "./feed";
import { clock, count, percent, printable, setSize } from "./format";
import { History } from "./history";
import { Keys } from "./keys";
import type { About, Round } from "./record";
import type { Scene, View } from "./view";
import { CallsView } from "./views/calls";
import { ClassesView } from "./views/classes";
import { ControlView } from "./views/control";
import { EventsView } from "./views/events";
import { HistogramView } from "./views/histogram";
import { RanksView } from "./views/ranks";
import { StacksView } from "./views/stacks";
import { SummaryView } from "./views/summary";
import { TreeView } from "./views/tree";

const CONNECTIONS: Record<Connection, string> = {
  connecting: "Connecting",
  open: "Live",
  broken: "No connection: trying again each second. What is shown is what came before.",
  ended: "The program has ended",
  replay: "Replay",
};

class App {
  // Rounds by time or on demand, and iterations that the program has marked: each are numbered, and
  // forgotten, by themselves.
  private readonly series: Record<string, History> = { rounds: new History(), iterations: new History() };
  private readonly shown = new Choice("Series", () => this.changeSeries());
  private about: About | null = null;
  private connection: Connection = "connecting";
  private end: string | null = null;
  private lost = 0;
  // The sequence of the round that is looked at; none while the latest one is followed.
  private looked: number | null = null;
  private isAsked = false;
  private measured = 0;

  private readonly status = element("p", { class: "status", role: "status" });
  private readonly command = element("p", { class: "command" });
  private readonly numbers = element("dl", { class: "numbers" });
  private readonly alert = element("div", { class: "alert", role: "alert" });
  private readonly tabs = element("nav", { role: "tablist", "aria-label": "Views" });
  private readonly main = element("main");
  private readonly slider = element("input", { type: "range", min: 0, value: 0, step: 1, "aria-label": "Round that is looked at" });
  private readonly now = element("output", { class: "now" });
  private readonly followButton = element("button", { type: "button", click: () => this.toggleFollowing() });
  private readonly foot = element("p", { class: "quiet foot" });
  private readonly views: View[];
  private readonly keys: Keys;
  private view: View;

  constructor() {
    const page = { look: (time: number) => this.look(time), redraw: () => this.ask() };
    this.views = [
      new SummaryView(page),
      new EventsView(page),
      new CallsView(),
      new RanksView(page),
      new HistogramView(page),
      new ClassesView(page),
      new StacksView(),
      new TreeView(page),
      new ControlView(),
    ];
    this.view = this.views[0];
    this.keys = this.makeKeys();
    setTheme(localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
    this.build();
    this.open(this.views.find((view) => view.name === location.hash.slice(1)) ?? this.view);
  }

  start(): void {
    follow({
      about: (about) => {
        this.about = about;
        if (about.end !== null) this.end = about.end;
        this.ask();
      },
      round: (round, letters) => {
        this.series[round.record.iteration === null ? "rounds" : "iterations"].add(round, letters);
        this.ask();
        if (this.connection === "open") this.measure(round);
      },
      connection: (connection) => {
        this.connection = connection;
        this.ask();
      },
      lost: (rounds) => {
        this.lost += rounds;
        this.ask();
      },
      end: (how) => {
        this.end = how;
        this.ask();
      },
    });
  }

  private build(): void {
    const theme = element("button", { type: "button", title: "Dark or light (t)", click: () => this.toggleTheme() }, "Dark / light");
    const help = element("button", { type: "button", title: "Keys (?)", "aria-haspopup": "dialog", click: () => this.keys.show() }, "Keys ?");
    this.slider.addEventListener("input", () => {
      const round = this.history.rounds[Number(this.slider.value)];
      if (round) this.lookAt(round);
    });
    document.body.replaceChildren(
      element("header", {}, element("div", { class: "title" }, element("h1", {}, "sapwood mpi"), this.command), this.status, element("div", { class: "buttons" }, theme, help)),
      this.numbers,
      this.alert,
      this.tabs,
      this.main,
      element("footer", {}, element("div", { class: "time" }, this.shown.root, this.followButton, this.slider, this.now), this.foot),
      this.keys.window,
    );
    for (const [at, view] of this.views.entries()) {
      const tab = element("button", { type: "button", role: "tab", id: `tab-${view.name}`, "aria-controls": `view-${view.name}`, click: () => this.open(view) }, element("kbd", { "aria-hidden": "true" }, String(at + 1)), view.title);
      this.tabs.append(tab);
      view.root.id = `view-${view.name}`;
      view.root.setAttribute("role", "tabpanel");
      view.root.setAttribute("aria-labelledby", tab.id);
      this.main.append(view.root);
    }
    this.tabs.addEventListener("keydown", (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (step === 0) return;
      event.preventDefault();
      event.stopPropagation();
      const next = (this.views.indexOf(this.view) + step + this.views.length) % this.views.length;
      this.open(this.views[next]);
      document.getElementById(`tab-${this.view.name}`)?.focus();
    });
  }

  private makeKeys(): Keys {
    const letter = (key: string) => (event: KeyboardEvent) => event.key === key;
    return new Keys([
      { keys: `1 – ${this.views.length}`, text: "the views", matches: (event) => this.views[Number(event.key) - 1] !== undefined, act: (event) => this.open(this.views[Number(event.key) - 1]) },
      { keys: "← →", text: "one round back or forth", matches: (event) => event.key === "ArrowLeft" || event.key === "ArrowRight", act: (event) => this.step(event.key === "ArrowLeft" ? -1 : 1) },
      { keys: "Home", text: "the first round", matches: letter("Home"), act: () => this.look(0) },
      { keys: "End, f", text: "follow the latest round", matches: (event) => event.key === "End" || event.key === "f", act: () => this.look(null) },
      { keys: "Space", text: "hold, or follow again", matches: (event) => event.key === " " && (event.target as HTMLElement).tagName !== "BUTTON", act: () => this.toggleFollowing() },
      { keys: "s", text: "sort the table by its next column", matches: letter("s"), act: () => this.view.sort?.() },
      { keys: "[ ]", text: "the metric, event or scheme before or after", matches: (event) => event.key === "[" || event.key === "]", act: (event) => this.view.step?.(event.key === "[" ? -1 : 1) },
      { keys: "t", text: "dark or light", matches: letter("t"), act: () => this.toggleTheme() },
      { keys: "?", text: "these keys", matches: letter("?"), act: () => this.keys.show() },
    ]);
  }

  private open(view: View): void {
    this.view = view;
    history.replaceState(null, "", `#${view.name}`);
    for (const other of this.views) {
      other.root.hidden = other !== view;
      const tab = document.getElementById(`tab-${other.name}`);
      tab?.setAttribute("aria-selected", String(other === view));
      if (tab) tab.tabIndex = other === view ? 0 : -1;
    }
    this.ask();
  }

  private toggleTheme(): void {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    localStorage.setItem("theme", theme);
    setTheme(theme);
    this.ask();
  }

  // The series that is shown: rounds, unless there are iterations and these are chosen.
  private get history(): History {
    return this.series[this.shown.value] ?? this.series.rounds;
  }

  private changeSeries(): void {
    this.looked = null;
    this.ask();
  }

  private offerSeries(): void {
    const names = { rounds: "rounds by time", iterations: "iterations of the program" };
    const filled = Object.entries(names).filter(([name]) => this.series[name].rounds.length > 0);
    // Rounds are first, and so shown unless there are none.
    this.shown.offer(filled.map(([name, text]) => [name, text]));
    this.shown.root.hidden = filled.length < 2;
  }

  private look(time: number | null): void {
    this.lookAt(time === null ? null : (this.history.rounds[this.history.at(time)] ?? null));
  }

  private lookAt(round: Round | null): void {
    this.looked = round?.sequence ?? null;
    this.ask();
  }

  private toggleFollowing(): void {
    this.lookAt(this.looked === null ? this.history.latest : null);
  }

  private step(by: number): void {
    const { rounds } = this.history;
    const at = this.at() + by;
    if (at >= rounds.length) this.lookAt(null);
    else if (at >= 0) this.lookAt(rounds[at]);
  }

  private at(): number {
    return this.looked === null ? Math.max(0, this.history.rounds.length - 1) : this.history.place(this.looked);
  }

  // Draws once before the next picture, however much has come.
  private ask(): void {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.draw();
    });
  }

  // The time from a round's arrival at the server to the picture that has it.
  private measure(round: Round): void {
    if (round.published_ms === 0) return;
    requestAnimationFrame(() => {
      setTimeout(() => {
        this.measured = Math.max(0, Date.now() - round.published_ms);
        document.documentElement.dataset.pageMs = String(this.measured);
        document.documentElement.dataset.round = String(round.record.number);
      });
    });
  }

  private draw(): void {
    this.offerSeries();
    const at = this.at();
    const scene: Scene = { about: this.about, rounds: this.history.rounds, timed: this.series.rounds.rounds, at, isFollowing: this.looked === null };
    this.drawHead(scene);
    this.drawFoot(scene);
    this.view.draw(scene);
  }

  private drawHead(scene: Scene): void {
    this.command.textContent = printable(this.about?.command ?? "");
    const state = this.end !== null ? "ended" : this.connection;
    const how = this.end !== null ? `: ${printable(this.end)}` : "";
    const text = CONNECTIONS[state] + how;
    if (this.status.textContent !== text) this.status.textContent = text;
    this.status.dataset.state = state;
    document.title = `${state === "open" ? "" : `${CONNECTIONS[state].split(":")[0]} · `}sapwood mpi`;
    const record = scene.rounds[scene.at]?.record;
    const lines = record?.standstill ?? [];
    const alert = lines.join("\n");
    if (this.alert.dataset.text !== alert) {
      this.alert.dataset.text = alert;
      fill(this.alert, ...(lines.length > 0 ? [element("strong", {}, "Standstill"), ...lines.map((line) => element("p", {}, printable(line)))] : []));
    }
    this.alert.hidden = lines.length === 0;
    if (!record) return fill(this.numbers, number("rounds", "none yet"));
    const covered = setSize(record.covered);
    const [running, finalized] = [setSize(record.states.running), setSize(record.states.finalized)];
    const lost = setSize(record.states.lost) + record.missing.reduce((sum, loss) => sum + setSize(loss.ranks), 0);
    const time = record.time;
    fill(
      this.numbers,
      number("elapsed", clock(record.elapsed_s)),
      number("ranks", `${count(covered)} of ${count(record.world_size)}`),
      number("running", count(running)),
      finalized > 0 && number("finalized", count(finalized)),
      lost > 0 && number("lost or missing", count(lost), true),
      time && number("share of MPI", percent(time.mpi_ppm.mean / 1e6)),
      time?.efficiency && number("parallel efficiency", percent(time.efficiency.parallel)),
      time?.efficiency && number("load balance", percent(time.efficiency.load_balance)),
      time?.efficiency && number("communication", percent(time.efficiency.communication)),
      record.dropped > 0 && number("not counted", count(record.dropped), true),
    );
  }

  private drawFoot(scene: Scene): void {
    const { rounds } = scene;
    this.slider.max = String(Math.max(0, rounds.length - 1));
    this.slider.value = String(scene.at);
    const record = rounds[scene.at]?.record;
    const name = record?.iteration ? `iteration ${record.iteration}` : `round ${record?.number}`;
    const now = record ? `${name} at ${clock(record.elapsed_s)}` : "no round yet";
    this.now.textContent = now;
    this.slider.setAttribute("aria-valuetext", now);
    this.followButton.textContent = scene.isFollowing ? "Hold" : "Follow the latest";
    this.followButton.setAttribute("aria-pressed", String(!scene.isFollowing));
    const newest = rounds.at(-1)?.record.number ?? -1;
    const kind = record?.iteration ? "iterations" : "rounds";
    const parts = [rounds.length < newest + 1 ? `${count(rounds.length)} of ${count(newest + 1)} ${kind} are kept, fewer of the older ones` : `${count(rounds.length)} ${kind}`];
    if (this.lost > 0) parts.push(`${count(this.lost)} rounds were lost because this browser read too slowly`);
    const leftOut = Object.entries(rounds[scene.at]?.left_out ?? {});
    if (leftOut.length > 0) parts.push(`left out of this round: ${leftOut.map(([name, amount]) => `${count(amount)} ${name}`).join(", ")}`);
    if (this.measured > 0 && scene.isFollowing && this.end === null) parts.push(`shown ${Math.round(this.measured)} ms after it came`);
    this.foot.textContent = parts.join(" · ");
  }
}

function number(name: string, value: string, isBad = false): HTMLElement {
  return element("div", { class: isBad ? "bad" : "" }, element("dt", {}, name), element("dd", {}, value));
}

function setTheme(theme: string): void {
  document.documentElement.dataset.theme = theme;
}

new App().start();
