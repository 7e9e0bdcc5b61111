// Numbers and names as people read them.

const TIMES: [number, string][] = [
  [3.6e12, "h"],
  [6e10, "min"],
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];
const SIZES: [number, string][] = [
  [2 ** 40, "TiB"],
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
  [2 ** 10, "KiB"],
  [1, "B"],
];
const COUNTS: [number, string][] = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e4, "k"],
];

function figures(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 || value === Math.round(value) ? 0 : size >= 10 ? 1 : 2);
}

function scaled(value: number, units: [number, string][]): string {
  for (const [factor, unit] of units) if (Math.abs(value) >= factor) return `${figures(value / factor)} ${unit}`;
  const last = units[units.length - 1][1];
  return `${figures(value)} ${last}`;
}

export const nanoseconds = (value: number): string => (value === 0 ? "0 s" : scaled(value, TIMES));
export const seconds = (value: number): string => nanoseconds(value * 1e9);
export const bytes = (value: number): string => scaled(value, SIZES);
export const percent = (share: number): string => `${figures(100 * share)} %`;

export function count(value: number): string {
  for (const [factor, unit] of COUNTS) {
    if (Math.abs(value) >= factor) return `${figures(unit === "k" ? value / 1e3 : value / factor)} ${unit}`;
  }
  return figures(value);
}

// A time since the start, in the form of a clock.
export function clock(elapsed: number): string {
  const whole = Math.floor(elapsed);
  const two = (value: number): string => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  if (hours > 0) return `${hours}:${two(minutes)}:${two(whole % 60)}`;
  if (whole >= 60) return `${minutes}:${two(whole % 60)}`;
  return `${Number(elapsed.toFixed(1))} s`;
}

// A number by what its metric's name says of its unit.
export function byMetric(metric: string, value: number): string {
  if (metric.endsWith("_ns")) return nanoseconds(value);
  if (metric.endsWith("_s") && !metric.endsWith("per_s")) return seconds(value);
  if (metric.endsWith("_ppm")) return percent(value / 1e6);
  if (metric === "cpu") return percent(value);
  if (metric.includes("bytes")) return bytes(value) + (metric.endsWith("per_s") ? "/s" : "");
  return count(value);
}

const METRICS: Record<string, string> = {
  mpi_ppm: "share of MPI",
  time_ns: "time",
  calls: "calls",
  bytes: "bytes",
  compute_ns: "computing time",
  mpi_ns: "time in MPI",
};
export const metricName = (metric: string): string => METRICS[metric] ?? printable(metric.replaceAll("_", " "));

// A name of any bytes: what would not be seen, or would turn the text around, is written as its number.
export function printable(name: string): string {
  const shown = name.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, (letter) => {
    if (letter === "\n") return "\\n";
    return `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`;
  });
  return shown === "" ? "(no name)" : shown;
}

// How many ranks a set has, such as 0-3,7.
export function setSize(ranks: string): number {
  if (ranks === "") return 0;
  let size = 0;
  for (const part of ranks.split(",")) {
    const [first, last] = part.split("-").map(Number);
    size += (last ?? first) - first + 1;
  }
  return size;
}

const SCORE_MAX = 1000;

// A robust score: beyond a thousand its figures say nothing more.
export const scoreText = (score: number): string => (Math.abs(score) > SCORE_MAX ? (score < 0 ? `<-${SCORE_MAX}` : `>${SCORE_MAX}`) : score.toFixed(1));

const SET_LETTERS_MAX = 60;

// A set of ranks, shortened where it is very long.
export function rankSet(ranks: string): string {
  if (ranks === "") return "none";
  if (ranks.length <= SET_LETTERS_MAX) return ranks;
  const cut = ranks.slice(0, ranks.lastIndexOf(",", SET_LETTERS_MAX));
  return `${cut},… (${count(setSize(ranks))} ranks)`;
}

// A set of ranks with its noun.
export const ranksNamed = (ranks: string): string => `${/^\d+$/.test(ranks) ? "rank" : "ranks"} ${rankSet(ranks)}`;
