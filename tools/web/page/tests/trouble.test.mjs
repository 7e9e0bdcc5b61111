// What goes wrong: tokens, names, browsers that do not read, streams that break, programs that end.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Wire, drawn, openBrowser, openPage, openView, synthetic, shows, text } from "./browser.mjs";

let browser;
before(async () => (browser = await openBrowser()));
after(() => browser.close());

test("a wrong token is refused, in words", async () => {
  const served = synthetic(8, "--before", 2);
  const address = await served.address();
  const wrong = address.replace(/[0-9a-f]{32}/, "0".repeat(32));
  const { page, close } = await openPage(browser, wrong);
  await shows(page, "body", /The token in this address is wrong/);
  assert.equal((await fetch(`${wrong}api/records`)).status, 403);
  assert.equal((await fetch(`${address}api/records`)).status, 200);
  await close();
  assert.equal(await served.end(), 0);
});

test("names of any bytes are shown and nothing of them is obeyed", async () => {
  const served = synthetic(8, "--before", 2, "--hostile", 6, "--interval-ms", 300);
  const { page, troubles, close } = await openPage(browser, await served.address());
  await drawn(page, 2);
  await openView(page, "events");
  const table = await text(page, "#view-events .table table");
  assert.match(table, /<script>window\.hostile = 1<\/script>/);
  assert.match(table, /onerror="window\.hostile = 2"/);
  assert.match(table, /line\\nbreak\\u\{0\}\\u\{1b\}\[31m\\u\{202e\}tfel-ot-thgir/);
  assert.match(table, /__proto__/);
  for (const row of await page.locator("#view-events .table tbody tr").all()) await row.click();
  assert.equal(await page.evaluate(() => window.hostile), undefined);
  assert.deepEqual(troubles, []);
  await close();
  assert.equal(await served.end(), 0);
});

test("a million event names are bounded, and it is said", async () => {
  const served = synthetic(8, "--before", 1, "--hostile", 1_000_000, "--rounds", 0);
  const { page, troubles, close } = await openPage(browser, await served.address());
  await openView(page, "events");
  await page.waitForFunction(() => document.querySelectorAll("#view-events .table tbody tr").length === 1000);
  await shows(page, "#view-events caption", /999 k more events with less time are left out/);
  await shows(page, ".foot", /left out of this round: 999 k events/);
  assert.deepEqual(troubles, []);
  await close();
  assert.equal(await served.end(), 0);
});

test("a standstill is told above every view", async () => {
  const served = synthetic(8, "--before", 4, "--stands-from", 5, "--interval-ms", 300);
  const { page, close } = await openPage(browser, await served.address());
  await drawn(page, 4);
  await page.locator('[role="alert"]').waitFor();
  await shows(page, '[role="alert"]', /no MPI call has returned/);
  await openView(page, "calls");
  await shows(page, "#view-calls caption", /7 ranks are inside a call for longer than an interval/);
  await close();
  assert.equal(await served.end(), 0);
});

test("two browsers follow at once while a third one does not read", async () => {
  const served = synthetic(1000, "--before", 2, "--hostile", 900, "--interval-ms", 150);
  const address = await served.address();
  const stopped = new AbortController();
  // The answer's body is never read.
  const unread = await fetch(`${address}api/stream`, { signal: stopped.signal });
  const [one, two] = [await openPage(browser, address), await openPage(browser, address)];
  await drawn(one.page, 40);
  await drawn(two.page, 40);
  assert.equal(unread.status, 200);
  assert.deepEqual([...one.troubles, ...two.troubles], []);
  await one.close();
  await two.close();
  stopped.abort();
  assert.equal(await served.end(), 0);
});

test("the page says when the stream breaks, follows again without a gap, and says when the program has ended", async (t) => {
  const served = synthetic(8, "--before", 3, "--interval-ms", 300);
  const { hostname, port, pathname } = new URL(await served.address());
  const wire = await Wire.between(Number(port), hostname);
  // An open one would keep this program alive.
  t.after(() => wire.close());
  const { page, close } = await openPage(browser, `http://${hostname}:${wire.port}${pathname}`);
  await drawn(page, 4);
  wire.cut();
  await page.locator('.status[data-state="broken"]').waitFor();
  await shows(page, ".status", /No connection: trying again/);
  const before = Number(await page.locator("html").getAttribute("data-round"));
  // Rounds come meanwhile, too.
  await new Promise((resolve) => setTimeout(resolve, 1000));
  wire.mend();
  await page.locator('.status[data-state="open"]').waitFor();
  await drawn(page, before + 4);
  await page.waitForFunction(() => /^(\d+) rounds/.exec(document.querySelector(".foot").textContent)?.[1] - 1 === Number(document.documentElement.dataset.round));
  assert.equal(await served.end(), 0);
  await page.locator('.status[data-state="ended"]').waitFor();
  await shows(page, ".status", /The program has ended: exit code 0/);
  await openView(page, "events");
  await shows(page, "#view-events caption", /16 events/);
  await close();
});

test("orders reach the program, and a refused one is told", async () => {
  const served = synthetic(8, "--before", 2, "--interval-ms", 400);
  const address = await served.address();
  const { page, troubles, close } = await openPage(browser, address);
  await drawn(page, 2);
  await openView(page, "control");
  await page.fill('#view-control input[type="number"]', "0.25");
  await page.fill('#view-control input[type="text"]', "0-3, 7");
  await page.check('#view-control input[value="memory"]');
  await page.click('#view-control button[type="submit"]');
  const order = JSON.parse((await served.says(/order (\{.*interval_s.*\})/))[1]);
  assert.deepEqual(order, { ranks: "0-3,7", interval_s: 0.25, groups: ["mpi", "bytes", "memory"] });
  await page.click("text=A round at once");
  await served.says(/order \{"flush":true\}/);
  await page.waitForFunction(() => document.querySelector("#view-control [role=status]").textContent.includes("accepted"));
  const refused = await page.evaluate(async () => {
    const answer = await fetch("api/control", { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"refuse":1}' });
    return [answer.status, await answer.text()];
  });
  assert.deepEqual(refused, [422, "it was to be refused\n"]);
  troubles.splice(0, troubles.length, ...troubles.filter((trouble) => !trouble.includes("422")));
  assert.deepEqual(troubles, []);
  await close();
  assert.equal(await served.end(), 0);
});
