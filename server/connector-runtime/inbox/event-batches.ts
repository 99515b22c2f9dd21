import type { AcceptedEvent } from '../../connectors/contract/connector.ts';
import type { Deps } from '../../deps.ts';
import { type StoreOutcome, storeEvents } from './store-events.ts';
import type { InboxTarget } from './target.ts';

const MAX_EVENTS = 500;
const MAX_CHARACTERS = 4_000_000;
/** The rest of the connections serves other requests. */
const MAX_COMMITS = 3;

interface Waiting {
  target: InboxTarget;
  event: AcceptedEvent;
  done: PromiseWithResolvers<StoreOutcome>;
}

/**
 * Commits events of concurrent requests together: while one commit of a source is under way, its next events wait, and
 * the next commit takes all of them.
 */
export class EventBatches {
  /** By source. A source with an entry has a commit under way or waits for its turn. */
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #turns: (() => void)[] = [];
  #commits = 0;

  constructor(private readonly deps: Pick<Deps, 'db' | 'now'>) {}

  /** Resolves after the commit. */
  add(target: InboxTarget, event: AcceptedEvent): Promise<StoreOutcome> {
    const done = Promise.withResolvers<StoreOutcome>();
    const one = { target, event, done };
    const waiting = this.#waiting.get(target.account_connector_id);
    if (waiting) waiting.push(one);
    else {
      this.#waiting.set(target.account_connector_id, [one]);
      void this.#commitAll(target.account_connector_id);
    }
    return done.promise;
  }

  async #commitAll(id: string): Promise<void> {
    for (let waiting = this.#waiting.get(id)!; waiting.length > 0; ) {
      await this.#turn();
      const batch = takeBatch(waiting);
      try {
        const outcomes = await storeEvents(
          this.deps,
          batch[0]!.target,
          batch.map(({ event }) => event),
        );
        batch.forEach(({ done }, at) => done.resolve(outcomes[at]!));
      } catch (error) {
        for (const { done } of batch) done.reject(error);
      } finally {
        this.#endTurn();
      }
    }
    this.#waiting.delete(id);
  }

  async #turn(): Promise<void> {
    if (this.#commits < MAX_COMMITS) {
      this.#commits += 1;
      return;
    }
    const turn = Promise.withResolvers<void>();
    this.#turns.push(turn.resolve);
    await turn.promise;
  }

  #endTurn(): void {
    const next = this.#turns.shift();
    if (next) next();
    else this.#commits -= 1;
  }
}

/** Removes the first events that were verified with the same settings. */
function takeBatch(waiting: Waiting[]): Waiting[] {
  let characters = 0;
  const end = waiting.findIndex(({ target, event }, at) => {
    characters += event.body.length;
    return at > 0 && (at >= MAX_EVENTS || characters > MAX_CHARACTERS || target !== waiting[0]!.target);
  });
  return waiting.splice(0, end < 0 ? waiting.length : end);
}
