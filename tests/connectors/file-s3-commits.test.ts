import { afterAll, describe, expect, test } from 'bun:test';
import type { ConnectorContext, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { fileDestination } from '../../server/connectors/file/destination.ts';
import { FencedError } from '../../server/connectors/contract/errors.ts';
import { limitHangs } from '../support/hangs.ts';
import { startS3 } from '../support/s3.ts';
import { remoteContext } from './file-support.ts';
import { isThorough } from '../support/thorough.ts';
import { s3Target } from './s3-target.ts';

limitHangs();

const s3 = await startS3();
afterAll(() => s3.close());

const RUN = { stream_run_id: 'run' };
let places = 0;

/** A separate folder in the bucket, and a hook for each request of an attempt. */
function place() {
  const path = `commits/${(places += 1)}`;
  const settings = { ...s3.settings, path, format: 'jsonl' };
  const opened: ReturnType<typeof remoteContext>[] = [];
  const open = (target: Partial<WriteTarget> & { fence: number }, at?: AtRequest) => {
    const dead = new AbortController();
    const made = remoteContext(settings, { destination: true, signal: dead.signal });
    opened.push(made);
    const ctx = made.ctx as unknown as ConnectorContext<never>;
    const fetch = at ? watched(ctx.fetch, at, () => dead.abort(new Error('dead'))) : ctx.fetch;
    return fileDestination.open({ ...ctx, fetch }, s3Target({ ...RUN, ...target }));
  };
  const rows = async () => {
    const texts = await Promise.all((await s3.keys(`${path}/t/`)).map((key) => s3.get(key)));
    return texts.flatMap((text) => (text ?? '').split('\n').filter(Boolean)).toSorted();
  };
  /** Uploads with parts that are neither completed nor aborted. */
  const leftOver = async () => {
    const parts = opened.flatMap(({ recorded }) => recorded).filter(({ request }) => request.query?.partNumber);
    expect(parts.length).toBeGreaterThan(1);
    const states = parts.map(({ request }) =>
      s3.isOpenUpload(new URL(request.url).pathname.slice('/data/'.length), request.query?.uploadId ?? ''),
    );
    return (await Promise.all(states)).filter(Boolean).length;
  };
  const cleanUp = () => opened.forEach((one) => one.cleanUp());
  return { path, open, rows, leftOver, cleanUp };
}

/** Called with the number of each request, before it is sent or after its response. True: the attempt dies there. */
interface AtRequest {
  before?(number: number): boolean | Promise<boolean>;
  after?(number: number): boolean | Promise<boolean>;
}

function watched(
  fetch: typeof globalThis.fetch,
  { before, after }: AtRequest,
  die: () => void,
): typeof globalThis.fetch {
  let number = 0;
  const counted = async (input: string | URL | Request, init?: RequestInit) => {
    const own = (number += 1);
    if (await before?.(own)) die();
    const answer = await fetch(input, init);
    if (await after?.(own)) die();
    return answer;
  };
  return Object.assign(counted, { preconnect: fetch.preconnect });
}

const range = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const batch = (...ids: number[]) => ({ rows: ids.map((id) => [String(id)]), bytes: ids.length });
const lines = (...ids: number[]) => ids.map((id) => `{"id":${id}}`);

/** Loads row 1 with a checkpoint and row 2 at the end, starting at the committed state. */
async function load(open: Promise<Awaited<ReturnType<typeof fileDestination.open>>>): Promise<void> {
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

/** Number of requests of an undisturbed load. */
async function requestsOfLoad(): Promise<number> {
  const here = place();
  let most = 0;
  await load(here.open({ fence: 1 }, { before: (number) => (most = number) < 0 }));
  expect(await here.rows()).toEqual(lines(1, 2));
  here.cleanUp();
  return most;
}

describe('every row exists exactly once', () => {
  for (const when of ['before', 'after'] as const) {
    test(`if an attempt dies ${when} any of its requests`, async () => {
      const most = await requestsOfLoad();
      expect(most).toBeGreaterThan(15);
      for (let dies = 1; dies <= most; dies += 1) {
        const here = place();
        // From here on every request fails, as if the process were gone.
        const dead = { [when]: (number: number) => number === dies };
        const died = load(here.open({ fence: 1 }, dead)).then(
          () => false,
          () => true,
        );
        // After the last response there is nothing left to do.
        expect(await died).toBe(when === 'before' || dies < most);
        const before = await here.rows();
        expect([[], lines(1), lines(1, 2)]).toContainEqual(before);
        await load(here.open({ fence: 2 }));
        expect(await here.rows()).toEqual(lines(1, 2));
        expect(await here.leftOver()).toBe(0);
        expect(await s3.keys(`${here.path}/_pipeline_state/`)).toHaveLength(1);
        here.cleanUp();
      }
    });
  }

  test('if another attempt starts at any moment of a live one', async () => {
    const most = await requestsOfLoad();
    for (let at = 1; at <= most; at += 1) {
      const here = place();
      let second: Promise<void> | undefined;
      const meet = {
        after: async (number: number) => {
          if (number === at) await (second ??= load(here.open({ fence: 2 })));
          return false;
        },
      };
      const first = await load(here.open({ fence: 1 }, meet)).then(
        () => null,
        (error: unknown) => error,
      );
      await second;
      if (first !== null) expect(first).toBeInstanceOf(FencedError);
      expect(await here.rows()).toEqual(lines(1, 2));
      // The next attempt removes what the first one left behind.
      await load(here.open({ fence: 3 }));
      expect(await here.rows()).toEqual(lines(1, 2));
      expect(await here.leftOver()).toBe(0);
      expect(await s3.keys(`${here.path}/_pipeline_state/`)).toHaveLength(1);
      here.cleanUp();
    }
  });
});

test('every row exists exactly once if two attempts interleave in any order', async () => {
  const most = await requestsOfLoad();
  const opening = 9;
  for (let at = 2; at <= most; at += 1) {
    // Each step of the first attempt meets the second one early, late, and in between.
    for (const halt of isThorough ? range(opening) : [1 + (at % 3), 4 + (at % 3), opening]) {
      const here = place();
      const firstIsOver = Promise.withResolvers<void>();
      const secondHalts = Promise.withResolvers<void>();
      const wait = async (number: number) => {
        if (number !== halt) return false;
        secondHalts.resolve();
        await firstIsOver.promise;
        return false;
      };
      let second: Promise<void> | undefined;
      const meet = async (number: number) => {
        if (number !== at) return false;
        // From another run: files of the same run would replace each other.
        second = load(here.open({ fence: 2, stream_run_id: 'another' }, { after: wait }));
        await Promise.race([secondHalts.promise, second]);
        return false;
      };
      await load(here.open({ fence: 1 }, { after: meet })).catch((error: unknown) => {
        expect(error).toBeInstanceOf(FencedError);
      });
      firstIsOver.resolve();
      await second;
      expect(await here.rows()).toEqual(lines(1, 2));
      await load(here.open({ fence: 3 }));
      expect(await here.leftOver()).toBe(0);
      here.cleanUp();
    }
  }
});

test('an overwrite that dies leaves the old or the new rows, and the next attempt leaves the new ones', async () => {
  for (let dies = 1; ; dies += 1) {
    const here = place();
    await load(here.open({ fence: 1 }));
    const replace = async (fence: number, at?: AtRequest) => {
      const writer = await here.open({ fence, mode: 'overwrite', stream_run_id: 'next', state_version: 2 }, at);
      if (writer.committed?.finished) return writer.abort();
      await writer.write(batch(3));
      await writer.finish(null);
    };
    const died = await replace(2, { after: (number) => number === dies }).then(
      () => false,
      () => true,
    );
    const between = await here.rows();
    // The new file is completed before the old ones are removed: readers may see both, never neither.
    expect([lines(1, 2), lines(1, 2, 3), lines(1, 3), lines(2, 3), lines(3)]).toContainEqual(between);
    await replace(3);
    expect(await here.rows()).toEqual(lines(3));
    here.cleanUp();
    if (!died) break;
    expect(dies).toBeLessThan(40);
  }
});

test('a committed upload that the store dropped is reported once and does not block later attempts', async () => {
  const here = place();
  const lost = here.open({ fence: 1 }, { before: (number) => number > 8 });
  await load(lost).catch(() => {});
  const [key] = await s3.keys(`${here.path}/_pipeline_state/`);
  const claim = JSON.parse((await s3.get(key ?? '')) ?? '');
  claim.record.publish = [{ from: 'gone', to: 'run-00000.jsonl', parts: ['"x"'] }];
  await s3.put(key ?? '', JSON.stringify(claim));
  await expect(here.open({ fence: 2 })).rejects.toMatchObject({ code: 'committed_file_lost' });
  await load(here.open({ fence: 3 }));
  here.cleanUp();
});
