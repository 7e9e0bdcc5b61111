// The rounds, or iterations, that the page keeps, in bounded memory: like the server, it forgets every second one of
// the older rounds when there are too many.

import type { Round } from "./record";

export const ROUNDS_MAX = 2048;
// Letters of JSON; the objects made of them take a few times as many bytes.
export const LETTERS_MAX = 32 << 20;
const RECENT_SHARE = 4;

export class History {
  rounds: Round[] = [];
  private letters: number[] = [];
  private sum = 0;

  // Takes a round in unless it is there already. Rounds that come again or late find their place.
  add(round: Round, letters: number): void {
    let at = this.rounds.length;
    while (at > 0 && this.rounds[at - 1].sequence > round.sequence) at -= 1;
    if (at > 0 && this.rounds[at - 1].sequence === round.sequence) return;
    this.rounds.splice(at, 0, round);
    this.letters.splice(at, 0, letters);
    this.sum += letters;
    while (this.rounds.length > 2 && (this.rounds.length > ROUNDS_MAX || this.sum > LETTERS_MAX)) this.thin();
  }

  get latest(): Round | null {
    return this.rounds.at(-1) ?? null;
  }

  // The place of the last round that came no later than one of this sequence; 0 if none did. Many
  // iterations may have come at one time.
  place(sequence: number): number {
    const behind = this.rounds.findIndex((round) => round.sequence > sequence);
    return Math.max(0, (behind < 0 ? this.rounds.length : behind) - 1);
  }

  // The place of the last round that was complete at a time; 0 if none was.
  at(elapsed: number): number {
    let low = 0;
    let high = this.rounds.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.rounds[middle].record.elapsed_s <= elapsed) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  private thin(): void {
    const recent = Math.max(1, Math.floor(this.rounds.length / RECENT_SHARE));
    const older = this.rounds.length - recent;
    const isKept = (_: unknown, at: number): boolean => at >= older || at % 2 === 0;
    const before = this.rounds.length;
    this.letters = this.letters.filter(isKept);
    this.rounds = this.rounds.filter(isKept);
    if (this.rounds.length === before) {
      this.rounds.shift();
      this.letters.shift();
    }
    this.sum = this.letters.reduce((sum, letters) => sum + letters, 0);
  }
}
