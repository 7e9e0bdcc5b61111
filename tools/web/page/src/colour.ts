// Colours that people with any kind of sight can tell apart: viridis for amounts, those of Okabe and
// Ito for kinds.

// Every sixteenth colour of viridis (its authors have given it to everyone).
const VIRIDIS = [
  0x440154, 0x481a6c, 0x472f7d, 0x414487, 0x39568c, 0x31688e, 0x2a788e, 0x23888e, 0x1f988b, 0x22a884, 0x35b779,
  0x54c568, 0x7ad151, 0xa5db36, 0xd2e21b, 0xfde725,
];
const STEPS = 256;

// For each of 256 steps red, green and blue.
export const RAMP = new Uint8Array(3 * STEPS);
for (let step = 0; step < STEPS; step++) {
  const at = (step / (STEPS - 1)) * (VIRIDIS.length - 1);
  const from = Math.min(Math.floor(at), VIRIDIS.length - 2);
  for (let part = 0; part < 3; part++) {
    const shift = 16 - 8 * part;
    const [low, high] = [(VIRIDIS[from] >> shift) & 255, (VIRIDIS[from + 1] >> shift) & 255];
    RAMP[3 * step + part] = Math.round(low + (high - low) * (at - from));
  }
}

export function ramp(share: number): string {
  const step = 3 * Math.round(255 * Math.min(1, Math.max(0, share)));
  return `rgb(${RAMP[step]},${RAMP[step + 1]},${RAMP[step + 2]})`;
}

// Whether black letters are read better on it than white ones.
export const isLight = (share: number): boolean => share > 0.55;

// On dark and on light ground: blue, orange, green, pink, sky, vermillion, yellow or ochre, grey.
const KINDS_DARK = ["#56b4e9", "#e69f00", "#2fc194", "#e08bc0", "#8fd0ff", "#f2753a", "#f0e442", "#b0b0b0"];
const KINDS_LIGHT = ["#0072b2", "#b87700", "#00805c", "#b35a92", "#3a93c9", "#c84f00", "#8f8600", "#666666"];

export function kind(number: number): string {
  const kinds = isDark() ? KINDS_DARK : KINDS_LIGHT;
  return kinds[number % kinds.length];
}

export function isDark(): boolean {
  return document.documentElement.dataset.theme === "dark";
}

export function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
