/** A recorded request. */
export interface SeenRequest {
  method: string;
  path: string;
  query: Record<string, string>;
  headers: Record<string, string>;
  body: string;
}

export type Answering = (request: SeenRequest) => Response | Promise<Response>;

export interface HttpServer {
  url: string;
  /** All requests, in order. */
  seen: SeenRequest[];
  /** Responses by path, or by a path without its last part, as `/items/*`. Other paths are 404. */
  on(path: string, answer: Answering): void;
  /** Requests without a response yet. */
  open(): number;
  close(): Promise<void>;
}

/** A server on a free port of the loopback interface. */
export function startHttpServer(): HttpServer {
  const answers = new Map<string, Answering>();
  const seen: SeenRequest[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const url = new URL(request.url);
      const asked = {
        method: request.method,
        path: url.pathname,
        query: Object.fromEntries(url.searchParams),
        headers: Object.fromEntries(request.headers),
        body: await request.text(),
      };
      seen.push(asked);
      const answer = answers.get(url.pathname) ?? answers.get(url.pathname.replace(/[^/]*$/, '*'));
      return answer ? answer(asked) : Response.json({ message: 'There is nothing here' }, { status: 404 });
    },
  });
  return {
    url: server.url.origin,
    seen,
    on: (path, answer) => answers.set(path, answer),
    open: () => server.pendingRequests,
    close: () => server.stop(true),
  };
}

/** Responses in sequence. The last one repeats. */
export function inTurn(...answers: Answering[]): Answering {
  let at = 0;
  return (request) => {
    const answer = answers[Math.min(at, answers.length - 1)] as Answering;
    at += 1;
    return answer(request);
  };
}

export const json =
  (value: unknown, init?: ResponseInit): Answering =>
  () =>
    Response.json(value, init);

export interface Item {
  id: number;
  name: string | null;
  at: string;
}

/** Items whose times grow, three to a second. */
export const makeItems = (count: number, from = '2026-01-01T00:00:00Z'): Item[] =>
  Array.from({ length: count }, (_, id) => ({
    id,
    name: id % 7 === 0 ? null : `Zoë ☃ ${id}`,
    at: new Date(Date.parse(from) + Math.floor(id / 3) * 1000).toISOString(),
  }));

const limitOf = ({ query }: SeenRequest) => Number(query.limit ?? 100);

/** One list in every kind of pagination. */
export const paged = {
  byNumber:
    (items: unknown[]): Answering =>
    (request) => {
      const from = (Number(request.query.page) - 1) * limitOf(request);
      return Response.json(items.slice(from, from + limitOf(request)));
    },
  byOffset:
    (items: unknown[]): Answering =>
    (request) => {
      const from = Number(request.query.offset);
      return Response.json({ data: { items: items.slice(from, from + limitOf(request)) } });
    },
  byCursor:
    (items: unknown[]): Answering =>
    (request) => {
      const from = Number(request.query.cursor ?? 0);
      const to = from + limitOf(request);
      return Response.json({ items: items.slice(from, to), next: to < items.length ? String(to) : null });
    },
  byLink:
    (items: unknown[]): Answering =>
    (request) => {
      const from = Number(request.query.from ?? 0);
      const to = from + limitOf(request);
      const link = `<${request.path}?from=${to}&limit=${limitOf(request)}>; rel="next", </first>; rel=first`;
      return Response.json(items.slice(from, to), to < items.length ? { headers: { link } } : {});
    },
  byAddress:
    (items: unknown[], base: () => string): Answering =>
    (request) => {
      const from = Number(request.query.from ?? 0);
      const to = from + limitOf(request);
      const next = to < items.length ? `${base()}${request.path}?from=${to}&limit=${limitOf(request)}` : undefined;
      return Response.json({ results: items.slice(from, to), links: { next } });
    },
};
