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
  /**
   * Keeps a connection that a session has not changed for the next session of the same attempt. `reset` brings it into
   * the state of a new one before another attempt gets it; null: it could not. Must not fail.
   */
  pass(settings: string, client: KeptClient, reset: () => Promise<KeptClient | null>): void;
}

/** Of one attempt. */
export interface AttemptSessions extends SessionKeeper {
  /** Resets what was passed and not taken. Call it at the end of the attempt. */
  settle(): Promise<void>;
}

/** Users expect that an idle service lets go of their databases, and many servers limit the connections of a user. */
const IDLE_MS = 10_000;
const MAX_CLIENTS = 32;
/** One that the attempt does not go on with at once is reset: the attempt may take hours. */
const PASSED_MS = 1_000;

interface Passed {
  client: KeptClient;
  reset: () => Promise<KeptClient | null>;
  expiry: ReturnType<typeof setTimeout>;
}

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

  constructor(private readonly limits = { idle_ms: IDLE_MS, max: MAX_CLIENTS, passed_ms: PASSED_MS }) {}

  /** Of one account connector: sessions never pass from one to another, although their settings may be the same. */
  of(account_connector_id: string, reach: (host: string, port: number) => Promise<void>): AttemptSessions {
    const keyOf = (settings: string) => `${account_connector_id} ${settings}`;
    const passed = new Map<string, Passed>();
    const takePassed = (settings: string): Passed | undefined => {
      const one = passed.get(settings);
      passed.delete(settings);
      clearTimeout(one?.expiry);
      return one;
    };
    const settle = async (settings: string) => {
      const one = takePassed(settings);
      if (!one) return;
      const client = await one.reset();
      if (client) this.#keep(keyOf(settings), client);
      else await one.client.close();
    };
    return {
      take: async <Client extends KeptClient>(settings: string, { host, port }: { host: string; port: number }) => {
        const own = takePassed(settings)?.client;
        if (own && !own.isAlive()) void own.close();
        const client = own?.isAlive() ? own : this.#take(keyOf(settings));
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
      pass: (settings, client, reset) => {
        void settle(settings);
        const expiry = setTimeout(() => void settle(settings), this.limits.passed_ms);
        expiry.unref();
        passed.set(settings, { client, reset, expiry });
      },
      settle: async () => {
        await Promise.all([...passed.keys()].map(settle));
      },
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
