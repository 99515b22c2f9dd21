/** A logged-in connection in the state of a new one. */
export interface KeptClient {
  /** Neither side has closed it. */
  isAlive(): boolean;
  /** Must not fail. */
  close(): Promise<void>;
}

/** Keeps connections from one session for the next, with the same or a later run. */
export interface SessionKeeper {
  /**
   * @param settings everything that the connection was opened with
   * @returns null if none is kept
   */
  take<Client extends KeptClient>(settings: string, server: { host: string; port: number }): Promise<Client | null>;
  keep(settings: string, client: KeptClient): void;
}

/** Users expect that an idle service lets go of their databases, and many servers limit the connections of a user. */
const IDLE_MS = 10_000;
const MAX_CLIENTS = 32;

interface Entry {
  key: string;
  client: KeptClient;
  expiry: ReturnType<typeof setTimeout>;
}

/**
 * Logged-in connections of this process that wait for the next run. A new one costs a server its start, its login and the
 * reading of its catalog: 60 to 100 ms of processor time for each run of ten rows.
 */
export class KeptSessions {
  /** The oldest first. */
  readonly #entries: Entry[] = [];
  #closed = false;

  constructor(private readonly limits = { idle_ms: IDLE_MS, max: MAX_CLIENTS }) {}

  /** Of one account connector: sessions never pass from one to another, although their settings may be the same. */
  of(account_connector_id: string, reach: (host: string, port: number) => Promise<void>): SessionKeeper {
    const keyOf = (settings: string) => `${account_connector_id} ${settings}`;
    return {
      take: async <Client extends KeptClient>(settings: string, { host, port }: { host: string; port: number }) => {
        const client = this.#take(keyOf(settings));
        if (!client) return null;
        try {
          await reach(host, port);
        } catch (error) {
          void client.close();
          throw error;
        }
        return client as Client;
      },
      keep: (settings, client) => this.#keep(keyOf(settings), client),
    };
  }

  /** Of those that fit, the one used last: its server has the most in memory. */
  #take(key: string): KeptClient | null {
    for (;;) {
      const at = this.#entries.findLastIndex((entry) => entry.key === key);
      const entry = this.#remove(at);
      if (!entry || entry.client.isAlive()) return entry?.client ?? null;
      void entry.client.close();
    }
  }

  #keep(key: string, client: KeptClient): void {
    if (this.#closed) return void client.close();
    const expiry = setTimeout(() => {
      const entry = this.#remove(this.#entries.findIndex((one) => one.client === client));
      void entry?.client.close();
    }, this.limits.idle_ms);
    expiry.unref();
    this.#entries.push({ key, client, expiry });
    if (this.#entries.length > this.limits.max) void this.#remove(0)?.client.close();
  }

  #remove(at: number): Entry | undefined {
    const [entry] = at < 0 ? [] : this.#entries.splice(at, 1);
    clearTimeout(entry?.expiry);
    return entry;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#entries.splice(0).map(({ client, expiry }) => (clearTimeout(expiry), client.close())));
  }
}
