import type { Deps } from '../../deps.ts';
import { refusedOwner } from '../authentication.ts';
import { apiErrorIn } from '../error-response.ts';
import { type AuditedCall, recordCall } from './record.ts';

/** Repetitions within this time share an entry. */
const WINDOW_MS = 5 * 60_000;
/** Callers of one account, or without account, that are counted separately in a window. All others share entries. */
const MAX_CALLERS = 100;

interface Counted {
  call: AuditedCall;
  code: string;
  details: Record<string, unknown> | null;
  /** Since the last entry. */
  repeated: number;
}

/**
 * Refusals (401, 403, 429) by account, caller and code, counted in this process. The first is stored at once, repetitions
 * as one entry at the end of the window, so that callers cannot fill the table.
 */
class Refusals {
  readonly #counted = new Map<string, Counted>();
  readonly #callers = new Map<string, number>();
  #timer: Timer | null = null;

  constructor(private readonly deps: Deps) {}

  async note(refused: Omit<Counted, 'repeated'>): Promise<void> {
    const { call, code } = refused;
    const { principal, caller, action, about } = call;
    const account = principal?.account_id ?? about?.account_id ?? '';
    const place = principal ? action : (about?.resource_id ?? '');
    let key = JSON.stringify([account, principal?.api_key_id ?? '', caller.address, code, place]);
    const others = JSON.stringify([account, 'others', code]);
    const callers = this.#callers.get(account) ?? 0;
    if (!this.#counted.has(key) && callers >= MAX_CALLERS) key = others;
    const known = this.#counted.get(key);
    if (known) {
      known.repeated += 1;
      return;
    }
    this.#callers.set(account, callers + 1);
    const kept = key === others ? { ...call, caller: { ...caller, address: '', user_agent: null } } : call;
    this.#counted.set(key, { ...refused, call: kept, repeated: 0 });
    this.#timer ??= setTimeout(() => void this.flush(), WINDOW_MS).unref();
    await this.#store({ ...refused, call: kept }, 1);
  }

  /** Ends the window. */
  async flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    const ended = [...this.#counted.values()];
    this.#counted.clear();
    this.#callers.clear();
    for (const one of ended) {
      if (one.repeated > 0) await this.#store(one, one.repeated);
    }
  }

  async #store({ call, code, details }: Omit<Counted, 'repeated'>, count: number): Promise<void> {
    try {
      await recordCall(this.deps.db, call, { kind: 'refusal', outcome: 'refused', code, details, count });
    } catch (error) {
      this.deps.log.error({ err: error, code, count }, 'refusal could not be recorded');
    }
  }
}

const counters = new WeakMap<Deps, Refusals>();
const recorded = new WeakSet<Error>();
const REFUSED = [401, 403, 429];
/** What is recorded of the context of an error. */
const RECORDED = ['required_permission', 'provider'];

/**
 * Records an error that refuses the caller. Other errors, and one that was recorded before, are ignored. `callOf` is called
 * for those that are recorded: to look up an address takes as long as to check a request.
 */
export async function recordRefusal(deps: Deps, error: unknown, callOf: () => AuditedCall): Promise<void> {
  const refused = apiErrorIn(error);
  if (!refused || !REFUSED.includes(refused.status) || recorded.has(refused)) return;
  recorded.add(refused);
  const call = callOf();
  const counter = counters.get(deps) ?? new Refusals(deps);
  counters.set(deps, counter);
  const { code, context } = refused;
  const named = Object.entries(context).filter(([name]) => RECORDED.includes(name));
  const details = named.length > 0 ? Object.fromEntries(named) : null;
  await counter.note({ call: { ...call, principal: call.principal ?? refusedOwner(refused) }, code, details });
}

/** Stores the repetitions that were counted so far. */
export const flushRefusals = async (deps: Deps): Promise<void> => counters.get(deps)?.flush();
