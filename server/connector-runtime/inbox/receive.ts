import type { AcceptedEvent, ReceivedRequest } from '../../connectors/contract/connector.ts';
import { AuthenticationError, DataError } from '../../connectors/contract/errors.ts';
import type { Deps } from '../../deps.ts';
import { ApiError, badRequest, notFound } from '../../platform/errors.ts';
import { isToken } from './address.ts';
import { EventBatches } from './event-batches.ts';
import { type InboxTarget, InboxTargets } from './target.ts';

/** A request to an address, whose body is not read yet. */
export interface WebhookRequest {
  account_connector_id: string;
  token: string;
  headers: Headers;
  /** @throws ApiError 413 */
  readBody(limit: number): Promise<Uint8Array>;
}

/** Called with the source of a request once its address is known to be right. */
export type NoteSource = (source: Pick<InboxTarget, 'account_connector_id' | 'account_id' | 'name'>) => void;

/** Bytes of bodies that a process holds for requests that are not answered yet. */
const MAX_HELD_BYTES = 128 * 1024 * 1024;
const MAX_TRIES = 4;

/** The addresses of all sources, in one process. */
export class WebhookReceiver {
  readonly #targets: InboxTargets;
  readonly #batches: EventBatches;
  #held = 0;

  constructor(private readonly deps: Deps) {
    this.#targets = new InboxTargets(deps);
    this.#batches = new EventBatches(deps);
  }

  /**
   * Stores the event of a request. Resolves after its commit.
   * @throws ApiError 404 for an unknown address, 401 for a signature, 413, 400 for a body, 429 beyond a limit
   */
  async receive(request: WebhookRequest, note: NoteSource): Promise<'stored' | 'repeated'> {
    const target = await this.#addressed(request);
    note(target);
    const announced = Number(request.headers.get('content-length') ?? target.limits.body_bytes);
    const held = Math.min(announced, target.limits.body_bytes);
    if (this.#held + held > MAX_HELD_BYTES) throw tooBusy();
    this.#held += held;
    try {
      const body = await request.readBody(target.limits.body_bytes);
      return await this.#store(target, { headers: request.headers, body, now: this.deps.now().getTime() }, request);
    } finally {
      this.#held -= held;
    }
  }

  async #store(
    found: InboxTarget,
    received: ReceivedRequest,
    request: Pick<WebhookRequest, 'token'>,
  ): Promise<'stored' | 'repeated'> {
    let target = found;
    for (let tries = 1; tries <= MAX_TRIES; tries += 1) {
      const { event, by } = await this.#accepted(target, received);
      const outcome = await this.#batches.add(by, event);
      if (outcome === 'stored' || outcome === 'repeated') return outcome;
      if (outcome === 'full') throw inboxFull();
      target = await this.#again(target, request.token);
    }
    throw tooBusy();
  }

  async #accepted(target: InboxTarget, received: ReceivedRequest): Promise<{ event: AcceptedEvent; by: InboxTarget }> {
    try {
      return { event: accept(target, received), by: target };
    } catch (error) {
      const by = error instanceof ApiError ? await this.#targets.newer(target) : null;
      if (!by) throw error;
      return { event: accept(by, received), by };
    }
  }

  async #addressed({ account_connector_id, token }: WebhookRequest): Promise<InboxTarget> {
    const known = await this.#targets.find(account_connector_id);
    if (known && isToken(this.deps, known, token)) return known;
    if (!known) throw unknownAddress();
    return this.#again(known, token);
  }

  async #again(known: InboxTarget, token: string): Promise<InboxTarget> {
    const target = await this.#targets.newer(known);
    if (target && isToken(this.deps, target, token)) return target;
    throw unknownAddress();
  }
}

/** The errors of a connector as senders see them. */
function accept({ receiver, config }: InboxTarget, received: ReceivedRequest): AcceptedEvent {
  if (config === null) throw new ApiError(401, 'webhook_signature_refused', 'The source has no signing secret yet');
  try {
    return receiver.accept(config, received);
  } catch (error) {
    if (error instanceof AuthenticationError) throw new ApiError(401, error.code, error.message);
    if (error instanceof DataError) throw badRequest(error.code, error.message);
    throw error;
  }
}

/** The same for an unknown source and for a wrong token. */
const unknownAddress = () => notFound('Address');

const tooMany = (code: string, message: string, retry_after_seconds: number) =>
  new ApiError(429, code, message, { retry_after_seconds });
const inboxFull = () =>
  tooMany(
    'webhook_inbox_full',
    'The source keeps as many events as its settings allow. Send the event again later',
    60,
  );
const tooBusy = () => tooMany('webhook_busy', 'Too many events arrive at once. Send the event again in a moment', 1);
