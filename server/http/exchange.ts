import type { Db } from '../../db/types.ts';

/** A request and what handlers need to answer it. */
export interface HttpExchange {
  request: Request;
  /** Path parameters by position, decoded. */
  params: string[];
  request_id: string;
  /** The client's address, or that of a proxy outside TRUSTED_PROXIES. Empty when the app handles requests without listening. */
  address(): string;
  /** Headers for a successful response. */
  headers: Headers;
  /** Stores the response for repetitions of the request, in the transaction of the change. See idempotency.ts. */
  keep?(db: Db, answer: { status: number; body: unknown }): Promise<void>;
}
