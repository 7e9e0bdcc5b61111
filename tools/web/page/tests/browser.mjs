// What the tests share: a browser, programs that serve a page, and waits that end.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { connect, createServer } from "node:net";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

// How long a test waits for anything.
export const DEADLINE_MS = 60_000;
const FLAGS =
  "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";
export const root = fileURLToPath(new URL("../../../..", import.meta.url));
const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
export const SYNTHETIC = join(target, "debug/examples/synthetic_page");
export const SAPWOOD = process.env.SAPWOOD ?? join(target, "debug/sapwood");

export async function openBrowser() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  return chromium.launch({ executablePath, headless: true, args: FLAGS.split(" "), timeout: DEADLINE_MS });
}

// A page that notes what goes wrong in it, and every request that leaves its server.
export async function openPage(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(DEADLINE_MS);
  const troubles = [];
  page.on("pageerror", (error) => troubles.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().includes("ERR_CONNECTION_REFUSED") && !message.text().includes("net::ERR"))
      troubles.push(`console: ${message.text()}`);
  });
  const { origin } = new URL(address);
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol !== "data:" && url.origin !== origin) troubles.push(`request to ${url.origin}`);
  });
  await page.goto(address);
  return { page, troubles, close: () => context.close() };
}

// What a test that failed has left running is ended with its file, which waits for it otherwise.
const running = new Set();
after(() => Promise.all([...running].map((served) => served.kill())));

// A program that prints a page's address. It is ended by the end of its input, or by force.
export class Served {
  constructor(program, words, options = {}) {
    if (!existsSync(program)) throw new Error(`${program} is missing; 'make page-test' builds it`);
    this.said = "";
    this.child = spawn(program, words, { stdio: ["pipe", "pipe", "pipe"], ...options });
    for (const stream of [this.child.stdout, this.child.stderr]) stream.on("data", (data) => (this.said += data));
    running.add(this);
    this.ended = new Promise((resolve) =>
      this.child.on("exit", (code) => {
        running.delete(this);
        resolve(code);
      }),
    );
  }

  async says(pattern) {
    const began = Date.now();
    for (;;) {
      const found = pattern.exec(this.said);
      if (found) return found;
      if (Date.now() - began > DEADLINE_MS) throw new Error(`no ${pattern} within the deadline in: ${this.said}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async address() {
    return (await this.says(/(http:\/\/\S+)/))[1];
  }

  async end() {
    this.child.stdin.end();
    const late = setTimeout(() => this.child.kill("SIGKILL"), DEADLINE_MS);
    const code = await this.ended;
    clearTimeout(late);
    return code;
  }

  async kill(signal = "SIGKILL") {
    this.child.kill(signal);
    return this.ended;
  }
}

export const synthetic = (...words) => new Served(SYNTHETIC, words.map(String));

// What lies between a browser and a server, and can be cut.
export class Wire {
  static async between(port, host) {
    const wire = new Wire();
    wire.isCut = false;
    wire.sockets = new Set();
    wire.server = createServer((near) => {
      if (wire.isCut) return near.destroy();
      const far = connect(port, host);
      for (const [one, other] of [[near, far], [far, near]]) {
        wire.sockets.add(one);
        one.on("error", () => other.destroy());
        one.on("close", () => other.destroy());
        one.pipe(other);
      }
    });
    await new Promise((resolve) => wire.server.listen(0, "127.0.0.1", resolve));
    wire.port = wire.server.address().port;
    return wire;
  }

  cut() {
    this.isCut = true;
    for (const socket of this.sockets) socket.destroy();
    this.sockets.clear();
  }

  mend() {
    this.isCut = false;
  }

  close() {
    this.cut();
    this.server.close();
  }
}

// Waits until the page has drawn a round of at least this number.
export const drawn = (page, number) =>
  page.waitForFunction((number) => Number(document.documentElement.dataset.round) >= number, number);

export const text = (page, selector) => page.locator(selector).innerText();

// Waits until an element's text is like this: a view is drawn a moment after what calls for it.
export const shows = async (page, selector, pattern) => {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const seen = await text(page, selector);
    if (pattern.test(seen)) return;
    if (Date.now() >= deadline) assert.match(seen, pattern);
    await page.waitForTimeout(20);
  }
};

// How many of a canvas's pixels have a colour, and how many colours there are.
export const painted = (page, selector) =>
  page.locator(selector).evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const colours = new Set();
    let pixels = 0;
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] === 0) continue;
      pixels += 1;
      colours.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
    }
    return { pixels, colours: colours.size };
  });

// Waits until what was done is drawn.
export const settled = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));

// Opens a view, and waits until it is drawn.
export const openView = async (page, view) => {
  await page.click(`#tab-${view}`);
  await page.locator(`#view-${view}`).waitFor();
  await settled(page);
};
