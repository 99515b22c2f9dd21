import { ConfigurationError } from '../../contract/errors.ts';
import type { ApiRecord } from '../../kits/rest/records.ts';
import type { Scope } from '../interpolation/template.ts';
import type { ManifestPaginator, Position } from '../pagination/paginator.ts';
import type { PythonSession } from '../python/session.ts';
import { pythonSlice } from '../python/wire.ts';
import { pythonResponse, type SeenResponse } from '../requests/error-handling.ts';

/** The responses that a component may come back to. */
const MAX_KEPT = 10;

interface Part {
  records: ApiRecord[];
  /** What templates see as the response. */
  response: unknown;
}

export interface PythonReading<Found extends Part> {
  python: PythonSession;
  /** The retriever. */
  component: unknown;
  scope: Scope;
  paginator: ManifestPaginator;
  request(position: Position): Promise<SeenResponse[]>;
  /** The records of a response; null: it counts as none, and ends the pages. */
  partOf(seen: SeenResponse, how?: { transforms: boolean }): Promise<Found | null>;
  /** All that follows the record is known. */
  isKnown(last: ApiRecord | null): boolean;
}

interface Answer<Found> {
  seen: SeenResponse;
  part: Found | null;
}

/** The records of a slice by a retriever in Python, as they come. The service has its requests, pages and records. */
export async function* recordsByPython<Found extends Part>(
  reading: PythonReading<Found>,
): AsyncGenerator<{ records: ApiRecord[]; bytes: number }> {
  const { python, component, scope, paginator } = reading;
  const { readable, writable } = new TransformStream<{ records: ApiRecord[]; bytes: number }>();
  const writer = writable.getWriter();
  const stop = new AbortController();
  const initial = paginator.first.token;
  const args = [pythonSlice(scope), scope.stream_state ?? {}, initial];
  const host = hostOf(reading, async (page) => await writer.write(page));
  const done = python.callAlone(component, 'read', args, { host, signal: stop.signal }).then(
    () => writer.close(),
    (error: unknown) => writer.abort(error),
  );
  done.catch(() => {});
  try {
    yield* readable;
  } finally {
    stop.abort();
    await done.catch(() => {});
  }
}

function hostOf<Found extends Part>(
  { request, partOf, paginator, isKnown }: PythonReading<Found>,
  write: (page: { records: ApiRecord[]; bytes: number }) => Promise<void>,
) {
  const answers = new Map<number, Answer<Found>>();
  let count = 0;
  let bytes = 0;
  const answerOf = (number: unknown) => {
    const answer = answers.get(Number(number));
    if (answer) return answer;
    throw new ConfigurationError('unknown_response', `A retriever in Python asks for a response that is not kept`);
  };
  return {
    page: async (token: unknown) => {
      const found = await request({ index: token === null ? 0 : count, token });
      const [seen] = found;
      if (!seen || found.length > 1)
        throw new ConfigurationError(
          'unsupported_properties',
          'A retriever in Python cannot ask for properties in chunks',
        );
      bytes += seen.response.bytes;
      const number = count;
      count += 1;
      if (seen.isIgnored || seen.response.status >= 400) return await partOf(seen);
      answers.set(number, { seen, part: null });
      answers.delete(number - MAX_KEPT);
      return { ...pythonResponse(seen.response), number };
    },
    records: async (number: unknown, transforms: boolean) => {
      const answer = answerOf(number);
      answer.part = await partOf(answer.seen, { transforms });
      return answer.part?.records ?? [];
    },
    next_page: async (number: unknown, size: unknown, last: ApiRecord | null, token: unknown) => {
      const { seen, part } = answerOf(number);
      if (isKnown(last)) return null;
      const json = () => (part ? part.response : seen.json());
      const page = { seen: { ...seen, json }, count: Number(size), last };
      const next = await paginator.next({ index: Number(number), token }, page);
      return next?.token ?? null;
    },
    emit: async (records: ApiRecord[]) => {
      const page = { records, bytes };
      bytes = 0;
      await write(page);
      return null;
    },
  };
}
