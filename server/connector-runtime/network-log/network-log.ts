import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { networkLogSegments } from '../../../db/schema/index.ts';
import type {
  PendingRequest,
  Recorder,
  RequestRecord,
  RequestTimings,
  ResponseRecord,
} from '../../connectors/contract/connector.ts';
import type { Db } from '../../../db/types.ts';
import type { Deps } from '../../deps.ts';
import type { Redactor } from '../../platform/redaction/redact.ts';
import { FailedRequests } from './failed-requests.ts';
import { loggedBody } from './logged-body.ts';

/** Runs in the thread pool: compressing a segment takes as long as moving a few thousand rows. */
const compress = promisify(gzip);

const SEGMENT_BYTES = 1024 * 1024;
const SEGMENT_MS = 2000;
const MAX_LINES = 200_000;
const MAX_BYTES = 256 * 1024 * 1024;

export interface LogIdentity {
  account_id: string;
  connection_run_id: string;
  stream_run_id: string;
  stream_name: string;
  connector_type: 'source' | 'destination';
  attempt: number;
}

/**
 * Network log of one side of one attempt. Entries are redacted, buffered and stored as gzip members of about 1 MB or
 * 2 s. Await `NetworkLog.close` before ending the attempt: clients read the log once the run has ended.
 */
export class NetworkLog implements Recorder {
  requests = 0;
  #sequence = 0;
  #lines: string[] = [];
  #buffered = 0;
  #written = 0;
  #dropped = 0;
  #oldest = 0;
  #failed = new FailedRequests();
  #lost = 0;
  #reason = '';
  #storing: Promise<void> = Promise.resolve();

  constructor(
    private readonly deps: Deps,
    private readonly identity: LogIdentity,
    private readonly redactor: Redactor,
  ) {}

  start(request: RequestRecord): PendingRequest {
    const start = performance.now();
    const timestamp = this.deps.now().toISOString();
    this.requests += 1;
    const entry = (outcome: { response?: ResponseRecord; timings?: RequestTimings; error?: object }) =>
      this.#append({
        timestamp,
        request,
        duration_ms: Math.round((performance.now() - start) * 1000) / 1000,
        ...outcome,
      });
    return {
      done: (response, timings) => entry({ response, timings }),
      failed: (code, message) => entry({ error: { code, message: this.redactor.text(message) } }),
    };
  }

  #append(entry: {
    timestamp: string;
    request: RequestRecord;
    duration_ms: number;
    response?: ResponseRecord;
    timings?: RequestTimings;
    error?: object;
  }): void {
    if (this.#sequence >= MAX_LINES || this.#written >= MAX_BYTES) {
      this.#dropped += 1;
      return;
    }
    this.#sequence += 1;
    const { request, response } = entry;
    const line = {
      id: Bun.randomUUIDv7(),
      timestamp: entry.timestamp,
      connection_run_id: this.identity.connection_run_id,
      stream_run_id: this.identity.stream_run_id,
      stream_name: this.identity.stream_name,
      connector_type: this.identity.connector_type,
      sequence: this.#sequence,
      attempt: this.identity.attempt,
      request: {
        method: request.method,
        url: this.redactor.url(request.url),
        query: this.redactor.query(request.query ?? {}),
        headers: this.redactor.headers(request.headers ?? {}),
        ...this.#body(request),
      },
      response: response
        ? { status: response.status, headers: this.redactor.headers(response.headers ?? {}), ...this.#body(response) }
        : null,
      duration_ms: entry.duration_ms,
      timings: entry.timings ?? null,
      retry_of: this.#failed.repeatedBy(request),
      rate_limited: response?.status === 429,
      error: entry.error ?? null,
    };
    this.#failed.record(request, line.id, entry.error !== undefined || (response?.status ?? 0) >= 400);
    this.#push(JSON.stringify({ ...line, redactions: this.redactor.takeCount() }));
  }

  #body(part: RequestRecord | ResponseRecord) {
    const { body, body_truncated } = loggedBody(part, this.redactor);
    const body_bytes = part.body_bytes ?? (part.body == null ? 0 : Buffer.byteLength(part.body));
    return { body, body_bytes, body_truncated };
  }

  #push(line: string): void {
    if (this.#lines.length === 0) this.#oldest = performance.now();
    this.#lines.push(line);
    this.#buffered += line.length + 1;
    this.#written += line.length + 1;
    if (this.#buffered >= SEGMENT_BYTES) this.flush();
  }

  /** Stores entries older than 2 s. Called with each heartbeat. */
  flushOld(): void {
    if (this.#lines.length > 0 && performance.now() - this.#oldest >= SEGMENT_MS) this.flush();
  }

  flush(): void {
    if (this.#lines.length === 0) return;
    const lines = this.#lines;
    this.#lines = [];
    this.#buffered = 0;
    this.#storing = this.#storing.then(() => this.#store(lines));
  }

  async #store(lines: string[]): Promise<void> {
    await storeSegments(this.deps.db, [await this.#put(lines)]);
  }

  /** A lost log must not fail the transfer. */
  #lose(entries: number, error: unknown): void {
    const { connection_run_id } = this.identity;
    this.deps.log.error({ err: error, connection_run_id }, 'network log segment not stored');
    this.#lost += entries;
    this.#reason = error instanceof Error ? error.message : String(error);
  }

  /** The object of a segment, which is not recorded yet. */
  async #put(lines: string[]): Promise<Segment | null> {
    const { deps, identity } = this;
    // Each further call to a store that failed would delay the end of the attempt by its time limit.
    if (this.#lost > 0) {
      this.#lost += lines.length;
      return null;
    }
    const id = Bun.randomUUIDv7();
    const { account_id, connection_run_id, stream_run_id, connector_type } = identity;
    const object_key = `network-logs/${account_id}/${connection_run_id}/${stream_run_id}/${connector_type}/${id}.jsonl.gz`;
    const entries = lines.length;
    try {
      const bytes = await compress(`${lines.join('\n')}\n`);
      await deps.objects.put(object_key, bytes);
      const of = { account_id, connection_run_id, stream_run_id, connector_type };
      const row = { ...of, id, object_key, entries, bytes: bytes.length };
      return { row, lose: (error) => this.#lose(entries, error) };
    } catch (error) {
      this.#lose(entries, error);
      return null;
    }
  }

  /** What is left, once everything before it is stored. */
  async #putLast(): Promise<Segment | null> {
    if (this.#dropped > 0) this.#push(JSON.stringify({ truncated: true, dropped: this.#dropped }));
    const lines = this.#lines;
    this.#lines = [];
    this.#buffered = 0;
    await this.#storing;
    return lines.length === 0 ? null : this.#put(lines);
  }

  #loss(): string[] {
    if (this.#lost === 0) return [];
    const entries = this.#lost === 1 ? '1 entry' : `${this.#lost} entries`;
    return [`${entries} of the ${this.identity.connector_type}'s network log could not be stored: ${this.#reason}`];
  }

  /** Stores the remaining entries of both sides. Returns what could not be stored, for warnings. */
  static async close(db: Db, logs: readonly NetworkLog[]): Promise<string[]> {
    await storeSegments(db, await Promise.all(logs.map((log) => log.#putLast())));
    return logs.flatMap((log) => log.#loss());
  }
}

interface Segment {
  row: typeof networkLogSegments.$inferInsert;
  lose(error: unknown): void;
}

async function storeSegments(db: Db, found: readonly (Segment | null)[]): Promise<void> {
  const segments = found.filter((segment) => segment !== null);
  if (segments.length === 0) return;
  try {
    await db.insert(networkLogSegments).values(segments.map(({ row }) => row));
  } catch (error) {
    for (const segment of segments) segment.lose(error);
  }
}
