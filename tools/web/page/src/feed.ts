// The way of rounds from the server to the page. When the stream breaks it is opened again, and what
// came meanwhile is asked for.

import type { About, Round } from "./record";

export type Connection = "connecting" | "open" | "broken" | "ended" | "replay";

export interface Listener {
  about(about: About): void;
  round(round: Round, letters: number): void;
  connection(connection: Connection): void;
  lost(rounds: number): void;
  end(how: string): void;
}

const AGAIN_MS = 1000;

export function follow(listener: Listener): void {
  let latest = -1;
  let about: About | null = null;
  const take = (round: Round, letters: number): void => {
    latest = Math.max(latest, round.sequence);
    listener.round(round, letters);
  };

  async function fetchOlder(): Promise<void> {
    const query = latest < 0 ? "" : `?after=${latest}`;
    const answer = await fetch(`api/records${query}`);
    if (!answer.ok) throw new Error(await answer.text());
    const text = await answer.text();
    const told = JSON.parse(text) as { about: About; rounds: Round[] };
    about = told.about;
    listener.about(told.about);
    const letters = told.rounds.length === 0 ? 0 : text.length / told.rounds.length;
    for (const round of told.rounds) take(round, letters);
  }

  function open(): void {
    const stream = new EventSource("api/stream");
    let hasFailed = false;
    stream.addEventListener("open", () => {
      fetchOlder()
        .then(() => {
          if (stream.readyState === EventSource.OPEN) listener.connection(about?.is_replay ? "replay" : "open");
        })
        .catch(again);
    });
    stream.addEventListener("about", (event) => listener.about(JSON.parse(event.data) as About));
    stream.addEventListener("round", (event) => take(JSON.parse(event.data) as Round, event.data.length));
    stream.addEventListener("lost", (event) => listener.lost(JSON.parse(event.data) as number));
    stream.addEventListener("end", (event) => {
      hasFailed = true;
      stream.close();
      listener.end(JSON.parse(event.data) as string);
      listener.connection("ended");
    });
    stream.addEventListener("error", again);

    // One try after the other, by hand: a browser gives up by itself on some errors.
    function again(): void {
      if (hasFailed) return;
      hasFailed = true;
      stream.close();
      listener.connection("broken");
      setTimeout(open, AGAIN_MS);
    }
  }

  open();
}

// Sends an order; gives what the server says to it.
export async function order(what: Record<string, unknown>): Promise<{ isTaken: boolean; text: string }> {
  try {
    const answer = await fetch("api/control", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(what),
    });
    return { isTaken: answer.ok, text: (await answer.text()).trim() };
  } catch {
    return { isTaken: false, text: "The server did not answer; the order was not given." };
  }
}
