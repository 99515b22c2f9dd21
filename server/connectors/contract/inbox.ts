import type { StreamState } from './stream.ts';

/** A request to the address of a source, before anything of it is trusted. */
export interface ReceivedRequest {
  headers: Headers;
  body: Uint8Array;
  /** When the service received it, in milliseconds. */
  now: number;
}

/** An event that a source accepts. */
export interface AcceptedEvent {
  /** The sender's id, by which repetitions are recognized. Null: the event has none, and is stored with an id of its own. */
  id: string | null;
  type: string | null;
  /** The headers that are stored with it. */
  headers: Record<string, string>;
  /** JSON. */
  body: string;
}

/** What the service keeps for a source at most. */
export interface InboxLimits {
  events: number;
  bytes: number;
  /** Of one request. */
  body_bytes: number;
  /** How long events are kept after they were read. */
  retention_days: number;
}

/** How a source receives events at an address of the service. */
export interface Receiver<Config> {
  /** From the parameters that are not secrets. */
  limits(parameters: Record<string, unknown>): InboxLimits;
  /** The largest `InboxLimits.body_bytes` that settings can have. */
  max_body_bytes: number;
  /**
   * Verifies a request and takes the event from it.
   * @throws AuthenticationError without a trace of the secret; DataError for a body that is not an event
   */
  accept(config: Config, request: ReceivedRequest): AcceptedEvent;
  /** Whether the events of a type are part of the stream. The service releases events by it. */
  streams: {
    /** Has all events. */
    all: string;
    /** Before the type: the stream that has the events of one type. */
    by_type: string;
  };
}

export interface StoredEvent {
  /** Ascending, in the order of the commits. */
  position: string;
  id: string;
  type: string | null;
  /** In the form of a cell. */
  received_at: string;
  /** JSON. */
  headers: string;
  body: string;
  bytes: number;
}

/** What the service has received for a source. */
export interface Inbox {
  standing(): Promise<InboxStanding>;
  /** Some of the events after one position up to another one, in their order; none: there are no more. */
  read(range: EventRange): Promise<StoredEvent[]>;
}

export interface EventRange {
  after: string;
  up_to: string;
  /** Absent: all types. */
  type?: string;
}

export interface InboxStanding {
  /** Of the newest event. No event gets this position or an earlier one any more. */
  last_position: string;
  /** Up to here, events may be deleted. */
  released_position: string;
  /** The types seen so far. */
  types: string[];
  stored_events: number;
}

/** A position as the state of a stream. */
export const positionIn = (state: StreamState | null): string =>
  state?.cursor != null && /^\d{1,18}$/.test(state.cursor) ? state.cursor : '0';
