// Events as they happen. EventSource can send no token, so the stream is read by hand.
import type { Client, Happening } from "./api";
import { Refused, wordsOf } from "./api";

export interface Hears {
  /** The stream begins; `complete` if it continues where the last one ended. */
  begins: (complete: boolean) => void;
  /** Something happened; `isBefore` if the next complete request covers it. */
  happened: (events: Happening[], isBefore: boolean) => void;
  /** It is gone, and is tried again then, milliseconds from now. */
  gone: (why: Refused, again: number) => void;
}

/** The service says something at least every 15 s. */
const SILENCE = 40_000;
const AGAIN_FIRST = 1_000, AGAIN_LONGEST = 15_000;

export class Stream {
  /** The last event that was had; at first what makes all that are remembered come. */
  private last = "0-0";
  private again = AGAIN_FIRST;
  private stop: AbortController | null = null;
  private wake: (() => void) | null = null;
  private isAsleep = false;

  constructor(private readonly client: Client, private readonly hears: Hears) {}

  /** Reads for as long as the page is there. */
  async run(): Promise<never> {
    for (;;) {
      const why = await this.read();
      if (!this.isAsleep) this.hears.gone(why, this.again);
      // Without a token that is known there is nothing to be had until there is one.
      const waits = this.isAsleep || why.status === 401;
      await new Promise<void>((wake) => {
        this.wake = wake;
        if (!waits) setTimeout(wake, this.again);
      });
      this.again = Math.min(AGAIN_LONGEST, this.again * 2);
    }
  }

  /** Reads nothing until it is restarted: browsers have few connections to one service for all of their tabs. */
  sleep(): void {
    this.isAsleep = true;
    this.stop?.abort();
  }

  /** Restarts it if it sleeps. */
  awake(): void { if (this.isAsleep) this.restart(); }

  /** Tries again now. */
  restart(): void {
    this.isAsleep = false;
    this.again = AGAIN_FIRST;
    this.stop?.abort();
    this.wake?.();
  }

  /** Reads one stream to its end, and says why it ended. */
  private async read(): Promise<Refused> {
    const stop = this.stop = new AbortController();
    let timer = setTimeout(() => stop.abort(), SILENCE);
    try {
      const answer = await this.client.ask("GET", `/api/v1/events?after=${encodeURIComponent(this.last)}`, undefined, 0, stop.signal);
      const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = "";;) {
        const { done, value } = await reader.read();
        if (done) return new Refused(0, "the service has ended the stream of events");
        clearTimeout(timer);
        timer = setTimeout(() => stop.abort(), SILENCE);
        const pieces = (rest + value).split("\n\n");
        rest = pieces.pop()!;
        this.take(pieces);
      }
    } catch (error) {
      return error instanceof Refused ? error : new Refused(0, `the stream of events broke off: ${wordsOf(error)}`);
    } finally {
      clearTimeout(timer);
      this.stop = null;
    }
  }

  private take(pieces: string[]): void {
    const events: Happening[] = [];
    let isBefore = false;
    for (const piece of pieces) {
      const fields: Record<string, string> = {};
      for (const line of piece.split("\n")) {
        const colon = line.indexOf(": ");
        if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
      }
      if (fields.event === "begin") {
        this.again = AGAIN_FIRST;
        const { complete } = JSON.parse(fields.data);
        isBefore = !complete;
        this.hears.begins(complete);
      } else if (fields.data) {
        this.last = fields.id ?? this.last;
        events.push(JSON.parse(fields.data));
      }
    }
    if (events.length > 0) this.hears.happened(events, isBefore);
  }
}
