import { describe, expect, test } from 'bun:test';
import type { ConnectorContext, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { ConfigurationError, ConnectorError, FencedError } from '../../server/connectors/contract/errors.ts';
import { fileDestination } from '../../server/connectors/file/destination.ts';
import { isThorough, spread } from '../support/thorough.ts';
import { readFiles, type Recorded, remoteContext, type SourceTestContext } from './file-support.ts';
import { s3Target } from './s3-target.ts';

/** What happens to a request. `lost`: its connection breaks. `dies`: the attempt ends there, as if its process were gone. */
export type Fate = 'passes' | 'lost' | 'dies';

/** Called with the number of each request of an attempt, before it is sent or after its response. */
export interface AtRequest {
  before?(number: number): Fate | Promise<Fate>;
  after?(number: number): Fate | Promise<Fate>;
}

/** A table of one column in a folder of its own. */
export interface CommitPlace {
  /** Settings of the destination. */
  settings: Record<string, unknown>;
  /** Begins an attempt. */
  open(target: Partial<WriteTarget> & { fence: number }, at?: AtRequest): ReturnType<typeof fileDestination.open>;
  /** What a source reads of the table. */
  rows(): Promise<string[]>;
  /** What attempts have left beside the table and one state: uploads, drafts, states. */
  leftOver(): Promise<string[]>;
  cleanUp(): void;
}

export const batch = (...ids: number[]) => ({ rows: ids.map((id) => [String(id)]), bytes: ids.length });

/** Of `wideBatch`: more than one part of an upload holds. */
export const WIDE_ROWS = 180_000;

/** Rows of 60 digits. A row costs more processor time than its bytes, and only bytes fill a part. */
export function wideBatch(from: number, to: number) {
  const ids = Array.from({ length: to - from }, (_, at) => `1${String(from + at).padStart(59, '0')}`);
  return { rows: ids.map((id) => [id]), bytes: 60 * ids.length };
}

/** What a source with these settings reads. */
export async function readIds(ctx: SourceTestContext): Promise<string[]> {
  try {
    return (await readFiles(ctx)).rows.map(([id]) => id as string).toSorted();
  } catch (error) {
    if (error instanceof ConfigurationError && error.code === 'no_files') return [];
    throw error;
  }
}

interface ObjectPlace {
  /** Of the bucket or container. */
  settings: Record<string, unknown>;
  more?: object;
  /** Keys below a prefix. */
  keys(prefix: string): Promise<string[]>;
  /** Uploads that are neither completed nor aborted, of what was sent. Absent: the store deletes them itself. */
  uploads?(sent: Recorded[]): Promise<string[]>;
}

/** Multipart uploads with parts that take another one. */
export const openUploads =
  (store: { isOpenUpload(key: string, id: string): Promise<boolean> }) =>
  async (sent: Recorded[]): Promise<string[]> => {
    const open: string[] = [];
    for (const { request } of sent) {
      const { partNumber, uploadId } = request.query ?? {};
      if (partNumber === undefined || uploadId === undefined) continue;
      const key = new URL(request.url).pathname.slice('/data/'.length);
      if (await store.isOpenUpload(key, uploadId)) open.push(uploadId);
    }
    return open;
  };

let places = 0;

/** A place in a store of objects. Each call of `fetch` is a request. */
export function objectPlace({ settings: base, more, keys, uploads }: ObjectPlace): CommitPlace {
  const path = `commits/${(places += 1)}`;
  const settings = { ...base, path, format: 'jsonl', ...more };
  const opened: ReturnType<typeof remoteContext>[] = [];
  const contextFor = (own: object, options: Parameters<typeof remoteContext>[1] = {}) => {
    const made = remoteContext(own, options);
    opened.push(made);
    // The clock of the fixtures is not the emulator's.
    return { ...made.ctx, now: () => new Date() };
  };
  return {
    settings,
    async open(target, at) {
      const dead = new AbortController();
      const ctx = contextFor(settings, { destination: true, signal: dead.signal });
      const fetch = at ? watched(ctx.fetch, at, () => dead.abort(new Error('dead'))) : ctx.fetch;
      const all = { ...ctx, fetch } as unknown as ConnectorContext<never>;
      return fileDestination.open(all, s3Target({ stream_run_id: 'run', ...target }));
    },
    rows: () => readIds(contextFor({ ...base, path: `${path}/t/*` })),
    async leftOver() {
      const [, ...states] = await keys(`${path}/_pipeline_state/`);
      return [...states, ...((await uploads?.(opened.flatMap(({ recorded }) => recorded))) ?? [])];
    },
    cleanUp: () => opened.forEach((one) => one.cleanUp()),
  };
}

function watched(
  fetch: typeof globalThis.fetch,
  { before, after }: AtRequest,
  die: () => void,
): typeof globalThis.fetch {
  let number = 0;
  const meet = (fate: Fate | undefined) => {
    if (fate === 'dies') die();
    if (fate === 'lost') throw Object.assign(new Error('the connection was lost'), { code: 'ECONNRESET' });
  };
  const counted = async (input: string | URL | Request, init?: RequestInit) => {
    const own = (number += 1);
    meet(await before?.(own));
    const answer = await fetch(input, init);
    meet(await after?.(own));
    return answer;
  };
  return Object.assign(counted, { preconnect: fetch.preconnect });
}

/** Loads row 1 with a checkpoint and row 2 at the end, starting at the committed state. */
export async function load(open: ReturnType<CommitPlace['open']>): Promise<void> {
  const writer = await open;
  if (writer.committed?.state?.cursor === '2') return writer.abort();
  try {
    if (writer.committed?.state?.cursor !== '1') {
      await writer.write(batch(1));
      await writer.checkpoint({ cursor: '1' });
    }
    await writer.write(batch(2));
    await writer.finish({ cursor: '2' });
  } catch (error) {
    await writer.abort().catch(() => {});
    throw error;
  }
}

/** Replaces the rows by row 3, from another run. */
async function replace(open: ReturnType<CommitPlace['open']>): Promise<void> {
  const writer = await open;
  if (writer.committed?.finished) return writer.abort();
  await writer.write(batch(3));
  await writer.finish(null);
}

interface ObjectTexts {
  keys(prefix: string): Promise<string[]>;
  get(key: string): Promise<string | null>;
  put(key: string, text: string): Promise<void>;
}

/** Tests what happens after a store has deleted the upload of a committed file. */
export function testDroppedUpload(make: () => CommitPlace, store: ObjectTexts): void {
  test('a committed upload that the store dropped is reported once and does not block later attempts', async () => {
    const place = make();
    const first = await place.open({ fence: 1 });
    await first.abort();
    const [key = ''] = await store.keys(`${String(place.settings.path)}/_pipeline_state/`);
    const claim = JSON.parse((await store.get(key)) ?? '');
    claim.record.publish = [{ from: 'gone', to: 'run-00009.jsonl', parts: ['Z29uZQ=='] }];
    await store.put(key, JSON.stringify(claim));
    await expect(place.open({ fence: 2 })).rejects.toMatchObject({ code: 'committed_file_lost' });
    await load(place.open({ fence: 3 }));
    expect(await place.rows()).toEqual(['1', '2']);
    place.cleanUp();
  });
}

const failureOf = (work: Promise<void>) =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

/** Tried of what takes the same steps as the death of an attempt, which is tried at each of them. */
const SOME = 8;

const numbers = (count: number) => Array.from({ length: count }, (_, at) => at + 1);

/**
 * Tests that every row exists once whatever happens to an attempt.
 * @param least number of requests that a load needs. @param tried how many of them are tried, unless all are
 */
export function testCommits(
  make: (more?: object) => CommitPlace,
  { least, tried = Number.POSITIVE_INFINITY }: { least: number; tried?: number },
): void {
  const isQuick = tried === Number.POSITIVE_INFINITY;
  const requestsOf = async (work: (place: CommitPlace, hook: AtRequest) => Promise<void>): Promise<number[]> => {
    const place = make();
    let most = 0;
    await work(place, {
      before(number) {
        most = number;
        return 'passes';
      },
    });
    place.cleanUp();
    expect(most).toBeGreaterThanOrEqual(least);
    return spread(numbers(most), tried);
  };
  const requestsOfLoad = () => requestsOf((place, hook) => load(place.open({ fence: 1 }, hook)));
  const someOfLoad = async () => spread(await requestsOfLoad(), SOME);

  describe('every row exists exactly once', () => {
    for (const fate of ['dies', 'lost'] as const) {
      for (const when of ['before', 'after'] as const) {
        test(`if ${fate === 'dies' ? 'an attempt dies' : 'the connection is lost'} ${when} any request`, async () => {
          let failed = 0;
          for (const number of await (fate === 'dies' ? requestsOfLoad() : someOfLoad())) {
            const place = make();
            const hook = { [when]: (now: number) => (now === number ? fate : 'passes') };
            const error = await failureOf(load(place.open({ fence: 1 }, hook)));
            if (error) failed += 1;
            if (fate === 'lost' && error) expect(error).toBeInstanceOf(ConnectorError);
            expect(error).not.toBeInstanceOf(FencedError);
            expect([[], ['1'], ['1', '2']]).toContainEqual(await place.rows());
            await load(place.open({ fence: 2 }));
            expect(await place.rows()).toEqual(['1', '2']);
            expect(await place.leftOver()).toEqual([]);
            place.cleanUp();
          }
          if (fate === 'dies') expect(failed).toBeGreaterThan(2);
        });
      }
    }

    test('if another attempt starts at any moment of a live one', async () => {
      let fenced = 0;
      for (const number of await requestsOfLoad()) {
        const place = make();
        let second: Promise<void> | undefined;
        const meet = async (now: number): Promise<Fate> => {
          if (now === number) await (second ??= load(place.open({ fence: 2 })));
          return 'passes';
        };
        const error = await failureOf(load(place.open({ fence: 1 }, { after: meet })));
        await second;
        if (error !== null) expect(error).toBeInstanceOf(FencedError);
        if (error !== null) fenced += 1;
        expect(await place.rows()).toEqual(['1', '2']);
        // The next attempt removes what the first one left behind.
        await load(place.open({ fence: 3 }));
        expect(await place.rows()).toEqual(['1', '2']);
        expect(await place.leftOver()).toEqual([]);
        place.cleanUp();
      }
      expect(fenced).toBeGreaterThan(2);
    });

    test('if two attempts interleave in any order', async () => {
      for (const number of await someOfLoad()) {
        // Each step of the first attempt meets the second one early, late, and in between.
        for (const halt of isThorough && isQuick ? numbers(9) : [1 + (number % 3), 4 + (number % 3), 9]) {
          const place = make();
          const firstIsOver = Promise.withResolvers<void>();
          const secondHalts = Promise.withResolvers<void>();
          const wait = async (now: number): Promise<Fate> => {
            if (now !== halt) return 'passes';
            secondHalts.resolve();
            await firstIsOver.promise;
            return 'passes';
          };
          let second: Promise<void> | undefined;
          const meet = async (now: number): Promise<Fate> => {
            if (now !== number) return 'passes';
            // From another run: files of the same run would replace each other.
            second = load(place.open({ fence: 2, stream_run_id: 'another' }, { after: wait }));
            await Promise.race([secondHalts.promise, second]);
            return 'passes';
          };
          const error = await failureOf(load(place.open({ fence: 1 }, { after: meet })));
          if (error !== null) expect(error).toBeInstanceOf(FencedError);
          firstIsOver.resolve();
          await second;
          expect(await place.rows()).toEqual(['1', '2']);
          await load(place.open({ fence: 3 }));
          expect(await place.leftOver()).toEqual([]);
          place.cleanUp();
        }
      }
    });
  });

  test('an overwrite that dies leaves the old or the new rows, and the next attempt leaves the new ones', async () => {
    const target = { mode: 'overwrite' as const, stream_run_id: 'next', state_version: 2 };
    const requests = await requestsOf(async (place, hook) => {
      await load(place.open({ fence: 1 }));
      await replace(place.open({ ...target, fence: 2 }, hook));
    });
    for (const number of requests) {
      const place = make();
      await load(place.open({ fence: 1 }));
      const hook: AtRequest = { after: (now) => (now === number ? 'dies' : 'passes') };
      await failureOf(replace(place.open({ ...target, fence: 2 }, hook)));
      // The new file is complete before the old ones are removed: readers may see both, never neither.
      expect([['1', '2'], ['1', '2', '3'], ['1', '3'], ['2', '3'], ['3']]).toContainEqual(await place.rows());
      await replace(place.open({ ...target, fence: 3 }));
      expect(await place.rows()).toEqual(['3']);
      expect(await place.leftOver()).toEqual([]);
      place.cleanUp();
    }
  });

  test('an overwrite without rows leaves none', async () => {
    // The S3 server of the tests takes no empty parts, as JSON Lines without rows are.
    const place = make({ format: 'csv' });
    await load(place.open({ fence: 1 }));
    const writer = await place.open({ fence: 2, mode: 'overwrite', stream_run_id: 'next' });
    await writer.finish(null);
    expect(await place.rows()).toEqual([]);
    place.cleanUp();
  });
}
