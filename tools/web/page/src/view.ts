// What all views have in common: they draw the rounds that the page keeps, up to the one that is
// looked at.

import type { About, Round } from "./record";

export interface Scene {
  about: About | null;
  // All kept rounds, or iterations, of the series that is shown, the oldest first.
  rounds: Round[];
  // All kept rounds, whichever series is shown: settings and call stacks come with these.
  timed: Round[];
  // The place of the round that is looked at.
  at: number;
  // Whether that is always the latest one.
  isFollowing: boolean;
}

export interface View {
  readonly name: string;
  readonly title: string;
  readonly root: HTMLElement;
  draw(scene: Scene): void;
  // What the keys s, [ and ] do here: sort by the next column, choose the next or the one before.
  sort?(): void;
  step?(by: number): void;
}

// What views ask of the page.
export interface Page {
  look(time: number): void;
  redraw(): void;
}

export const times = (scene: Scene): number[] => scene.rounds.map((round) => round.record.elapsed_s);

export const markedTime = (scene: Scene): number | null =>
  scene.isFollowing ? null : (scene.rounds[scene.at]?.record.elapsed_s ?? null);

export const markedColumn = (scene: Scene): number | null => (scene.isFollowing ? null : scene.at);
