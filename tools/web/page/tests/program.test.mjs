// A real program: LAMMPS under `sapwood mpi --page`, and the replay of a recorded run.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { SAPWOOD, SYNTHETIC, Served, drawn, openBrowser, openPage, openView, root, shows, text } from "./browser.mjs";

const ENVIRONMENT = {
  ...process.env,
  OMPI_ALLOW_RUN_AS_ROOT: "1",
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: "1",
  OMPI_MCA_mpi_yield_when_idle: "1",
};

let browser;
before(async () => (browser = await openBrowser()));
after(() => browser.close());

test("LAMMPS is watched in the page while it runs, to its end", async () => {
  const words = "mpi --interval 500ms --no-live --page -- mpirun -np 2 --oversubscribe lmp -in demo/in.melt -var steps 100 -log none";
  const served = new Served(SAPWOOD, words.split(" "), { cwd: root, env: ENVIRONMENT });
  const { page, troubles, close } = await openPage(browser, await served.address());
  await drawn(page, 1);
  await openView(page, "events");
  await page.waitForFunction(() => /MPI_\w+/.test(document.querySelector("#view-events .table table").textContent));
  await shows(page, ".command", /mpirun -np 2 .* lmp -in demo\/in\.melt/);
  await shows(page, ".numbers", /2 of 2/);
  console.log(`page_ms ${await page.locator("html").getAttribute("data-page-ms")} with LAMMPS on 2 ranks`);
  assert.equal(await served.ended, 0, served.said);
  await page.locator('.status[data-state="ended"]').waitFor();
  await shows(page, ".status", /exit code 0/);
  // The last round is that of after the end: every rank has called MPI_Finalize.
  await shows(page, ".numbers", /finalized\s+2/);
  await shows(page, "#view-events .table table", /MPI_Finalize/);
  // What LAMMPS has written is its own, and whole.
  assert.match(served.said, /Loop time of .* on 2 procs for 100 steps/);
  assert.deepEqual(troubles, []);
  await close();
});

test("a recorded run is replayed, and looked at round by round", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sapwood-replay-"));
  execFileSync(SYNTHETIC, ["64", "--before", "50", "--write", join(folder, "rounds.ndjson")]);
  writeFileSync(join(folder, "profile.json"), JSON.stringify({ command: ["mpirun", "-np", "64", "it"] }));
  const served = new Served(SAPWOOD, ["mpi", "replay", folder, "--page"]);
  const { page, troubles, close } = await openPage(browser, await served.address());
  await page.locator('.status[data-state="replay"]').waitFor();
  assert.equal(await text(page, ".command"), "mpirun -np 64 it");
  await page.waitForFunction(() => document.querySelector(".now").textContent.startsWith("round 49 "));
  await page.locator('input[type="range"]').fill("7");
  await page.waitForFunction(() => document.querySelector(".now").textContent === "round 7 at 8 s");
  await shows(page, ".numbers", /elapsed\s+8 s/);
  await page.keyboard.press("9");
  await shows(page, "#view-control .nothing", /a replay takes none/);
  assert.deepEqual(troubles, []);
  await close();
  await served.kill("SIGTERM");
  rmSync(folder, { recursive: true });
});

test("rounds and iterations of a recorded run are series of their own", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sapwood-replay-"));
  execFileSync(SYNTHETIC, ["8", "--before", "20", "--iterations", "25", "--write", join(folder, "rounds.ndjson")]);
  const served = new Served(SAPWOOD, ["mpi", "replay", folder, "--page"]);
  const { page, troubles, close } = await openPage(browser, await served.address());
  await page.locator('.status[data-state="replay"]').waitFor();
  await served.says(/read: 20 rounds and 500 iterations;/);
  await page.waitForFunction(() => document.querySelector(".now").textContent.startsWith("round 19 "));
  await shows(page, ".foot", /^20 rounds$/);
  assert.equal(await page.locator("#view-summary .nothing:visible").count(), 0, "its time is that of the last round");
  await openView(page, "stacks");
  await shows(page, "#view-stacks h2", /stacks, taken at/);
  await page.selectOption("footer select", { label: "iterations of the program" });
  await page.waitForFunction(() => document.querySelector(".now").textContent.startsWith("iteration 500 "));
  await shows(page, ".foot", /^500 iterations$/);
  await shows(page, "#view-stacks h2", /stacks, taken at/);
  // Iterations of one time are stepped through one by one. Keys in a choice are its own.
  await page.click("h1");
  await page.locator("body").press("ArrowLeft");
  await page.waitForFunction(() => document.querySelector(".now").textContent.startsWith("iteration 499 "));
  assert.deepEqual(troubles, []);
  await close();
  await served.kill("SIGTERM");
  rmSync(folder, { recursive: true });
});

test("a run whose settings left times out says why it has no share of MPI", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sapwood-replay-"));
  const file = join(folder, "rounds.ndjson");
  execFileSync(SYNTHETIC, ["8", "--before", "3", "--write", file]);
  const records = readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  for (const record of records.slice(1)) {
    record.time = null;
    record.settings.groups_known = ["collective", "calls", "time", "bytes"];
    record.settings.groups = ["collective", "time"];
    record.settings.change = 1;
  }
  records[1].outliers = [
    { ...records[1].outliers[0], event: "deviates", score: -99987.3 },
    { ...records[1].outliers[0], event: "is like the others", score: 3.4 },
  ];
  records[1].states.exited = "2";
  writeFileSync(file, records.map((record) => `${JSON.stringify(record)}\n`).join(""));
  const served = new Served(SAPWOOD, ["mpi", "replay", folder, "--page"]);
  const { page, troubles, close } = await openPage(browser, await served.address());
  await page.locator('.status[data-state="replay"]').waitFor();
  await page.waitForFunction(() => document.querySelector(".now").textContent.startsWith("round 2 "));
  await shows(page, "#view-summary .nothing", /left out times or calls/);
  await page.locator("body").press("ArrowLeft");
  await page.waitForFunction(() => document.querySelector(".now").textContent.startsWith("round 1 "));
  const summary = await text(page, "#view-summary");
  assert.match(summary, /deviates/);
  assert.match(summary, /<-1000/);
  assert.match(summary, /without MPI_Finalize: rank 2\./);
  assert.doesNotMatch(summary, /is like the others/);
  assert.deepEqual(troubles, []);
  await close();
  await served.kill("SIGTERM");
  rmSync(folder, { recursive: true });
});

test("what cannot be replayed is named in one line", () => {
  const folder = mkdtempSync(join(tmpdir(), "sapwood-replay-"));
  const refused = () => {
    try {
      execFileSync(SAPWOOD, ["mpi", "replay", folder, "--page"], { stdio: ["ignore", "pipe", "pipe"] });
    } catch (error) {
      assert.equal(error.status, 2);
      return String(error.stderr).trim();
    }
    throw new Error("it was replayed");
  };
  assert.match(refused(), /^sapwood: '.*rounds\.ndjson' cannot be read: .*--out DIR.*$/);
  writeFileSync(join(folder, "rounds.ndjson"), "");
  assert.match(refused(), /^sapwood: '.*rounds\.ndjson' holds no round.*$/);
  writeFileSync(join(folder, "rounds.ndjson"), "{}\n");
  assert.match(refused(), /^sapwood: '.*rounds\.ndjson', line 1: this is no round.*$/);
  rmSync(folder, { recursive: true });
});
