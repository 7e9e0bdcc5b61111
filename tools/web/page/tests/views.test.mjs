// Every view of the page, of programs with 1 to 100,000 ranks.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drawn, openBrowser, openPage, openView, painted, settled, synthetic, shows } from "./browser.mjs";

let browser;
before(async () => (browser = await openBrowser()));
after(() => browser.close());

const VIEWS = ["summary", "events", "calls", "ranks", "histogram", "classes", "stacks", "tree", "control"];

for (const ranks of [1, 8, 1000, 100_000]) {
  test(`all views draw a program with ${ranks} ranks, dark and light`, async () => {
    const served = synthetic(ranks, "--before", 60, "--interval-ms", 300);
    const { page, troubles, close } = await openPage(browser, await served.address(), { colorScheme: ranks === 8 ? "light" : "dark" });
    await drawn(page, 60);
    assert.equal(await page.locator("html").getAttribute("data-theme"), ranks === 8 ? "light" : "dark");
    for (const view of VIEWS) {
      await openView(page, view);
      assert.equal(await page.locator(`#view-${view} .nothing:visible`).count(), 0, `${view} has data`);
    }
    await openView(page, "events");
    await shows(page, "#view-events caption", /16 events/);
    assert.ok((await painted(page, "#view-events .chart canvas")).pixels > 1000);
    assert.match(await page.locator("#view-events .chart").getAttribute("aria-label"), /solve.*mean .* from .* on rank/);
    await openView(page, "ranks");
    const map = await painted(page, "#view-ranks .heatmap canvas");
    assert.ok(map.pixels > 50_000 && map.colours > (ranks === 1 ? 4 : 60), JSON.stringify(map));
    await openView(page, "tree");
    if (ranks === 100_000) await shows(page, "#view-tree .quiet", /28\.6 k processes, of which the 2000 nearest/);
    await openView(page, "stacks");
    await shows(page, "#view-stacks .facts", /_start/);
    const pageMs = await page.evaluate(() => document.documentElement.dataset.pageMs);
    console.log(`page_ms ${pageMs} with ${ranks} ranks`);
    assert.deepEqual(troubles, []);
    await close();
    assert.equal(await served.end(), 0);
  });
}

test("a view without data says what gives it", async () => {
  const served = synthetic(8, "--bare", 1, "--before", 2, "--interval-ms", 300);
  const { page, troubles, close } = await openPage(browser, await served.address());
  await drawn(page, 2);
  const wanted = { ranks: "second round", histogram: "--histogram", classes: "--classes", stacks: "--stacks", tree: "4,096 processes" };
  for (const [view, option] of Object.entries(wanted)) {
    await openView(page, view);
    await shows(page, `#view-${view} .nothing`, new RegExp(option));
  }
  assert.deepEqual(troubles, []);
  await close();
  assert.equal(await served.end(), 0);
});

test("a rank of the map is looked at alone, and ranks are looked at closely", async () => {
  const served = synthetic(64, "--before", 40, "--interval-ms", 500);
  const { page, troubles, close } = await openPage(browser, await served.address());
  await drawn(page, 40);
  await openView(page, "ranks");
  const canvas = page.locator("#view-ranks .heatmap canvas");
  const box = await canvas.boundingBox();
  await canvas.click({ position: { x: box.width / 2, y: 8 } });
  await settled(page);
  await shows(page, "#view-ranks h2:nth-of-type(2)", /^rank 63 /);
  await page.fill("#view-ranks input >> nth=0", "16");
  await page.fill("#view-ranks input >> nth=1", "19");
  await page.locator("#view-ranks input >> nth=1").press("Tab");
  await settled(page);
  await canvas.click({ position: { x: box.width / 2, y: 8 } });
  await settled(page);
  await shows(page, "#view-ranks h2:nth-of-type(2)", /^rank 19 /);
  assert.deepEqual(troubles, []);
  await close();
  assert.equal(await served.end(), 0);
});

test("keys open views, sort, hold, change the theme and list themselves", async () => {
  const served = synthetic(8, "--before", 30, "--interval-ms", 400);
  const { page, troubles, close } = await openPage(browser, await served.address(), { colorScheme: "light" });
  await drawn(page, 31);
  for (const [at, view] of VIEWS.entries()) {
    await page.keyboard.press(String(at + 1));
    assert.ok(await page.locator(`#view-${view}`).isVisible(), view);
    assert.equal(await page.locator(`#tab-${view}`).getAttribute("aria-selected"), "true");
  }
  await page.keyboard.press("2");
  await page.keyboard.press("s");
  const sorted = page.locator('#view-events th[aria-sort="descending"]');
  assert.match(await sorted.innerText(), /deviation/);
  await page.keyboard.press("t");
  assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
  await page.keyboard.press("?");
  await page.locator("dialog[open]").waitFor();
  await shows(page, "dialog", /follow the latest round/);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Home");
  await page.waitForFunction(() => document.querySelector(".now").textContent.startsWith("round 0 "));
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelector(".now").textContent.startsWith("round 1 "));
  await page.keyboard.press("f");
  await page.waitForFunction(() => Number(/\d+/.exec(document.querySelector(".now").textContent)[0]) > 30);
  assert.deepEqual(troubles, []);
  await close();
  assert.equal(await served.end(), 0);
});

test("every control has a name, and a small window has no line that runs out of it", async () => {
  const served = synthetic(1000, "--before", 30, "--interval-ms", 400);
  const { page, troubles, close } = await openPage(browser, await served.address(), { viewport: { width: 390, height: 800 } });
  await drawn(page, 30);
  for (const view of VIEWS) {
    await openView(page, view);
    const unnamed = await page.evaluate(() => {
      const named = (one) => one.labels?.length || one.textContent.trim() || one.getAttribute("aria-label");
      const all = [...document.querySelectorAll("button, input, select, [role=img], [role=region]")];
      return all.filter((one) => one.checkVisibility() && !named(one)).map((one) => one.outerHTML);
    });
    assert.deepEqual(unnamed, [], view);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `${view} is ${width} pixels wide`);
  }
  assert.deepEqual(troubles, []);
  await close();
  assert.equal(await served.end(), 0);
});
