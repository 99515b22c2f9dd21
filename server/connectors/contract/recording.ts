/** One request as the network log keeps it, before redaction. Bodies are cut by the recorder. */
export interface RequestRecord {
  method: string;
  url: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: string | null;
  body_bytes?: number;
}
export interface ResponseRecord {
  status: number | null;
  headers?: Record<string, string>;
  body?: string | null;
  body_bytes?: number;
}
export interface RequestTimings {
  dns?: number;
  connect?: number;
  tls?: number;
  wait?: number;
  receive?: number;
}

/** Ends the entry that `Recorder.start` began. Exactly one of them is called, once. */
export interface PendingRequest {
  done(response: ResponseRecord, timings?: RequestTimings): void;
  failed(code: string, message: string): void;
}

/** Records what goes over the network. A connector calls it for all that is not `ctx.fetch`. */
export interface Recorder {
  start(request: RequestRecord): PendingRequest;
}
