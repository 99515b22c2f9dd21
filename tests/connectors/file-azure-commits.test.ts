import { afterAll, describe, expect, test } from 'bun:test';
import { parseParameters } from '../../server/connectors/contract/parameters.ts';
import { ConfigurationError, FencedError } from '../../server/connectors/contract/errors.ts';
import type { ConnectorContext, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { fileDestination } from '../../server/connectors/file/destination.ts';
import { startAzure } from '../support/azurite.ts';
import { limitHangs } from '../support/hangs.ts';
import { readFiles, remoteContext } from './file-support.ts';
import { s3Target } from './s3-target.ts';

limitHangs();

const azure = await startAzure();
afterAll(() => azure.close());
const keyless = withoutKey(azure.settings);

function withoutKey(settings: Record<string, unknown>): object {
  const { account_key: _, ...rest } = settings;
  return rest;
}

let places = 0;

/** A separate folder in the container, and a hook for each request of an attempt. */
function place(more: object = {}) {
  const path = `commits/${(places += 1)}`;
  const settings = { ...azure.settings, path, format: 'jsonl', ...more };
  const cleanUps: (() => void)[] = [];
  const contextFor = (own: object, options: Parameters<typeof remoteContext>[1] = {}) => {
    const made = remoteContext(own, options);
    cleanUps.push(made.cleanUp);
    // The context's clock is not the emulator's.
    return { ...made.ctx, now: () => new Date() };
  };
  const open = (target: Partial<WriteTarget> & { fence: number }, at?: (number: number) => Promise<boolean>) => {
    const dead = new AbortController();
    const ctx = contextFor(settings, { destination: true, signal: dead.signal });
    let number = 0;
    const watched = async (input: string | URL | Request, init?: RequestInit) => {
      const own = (number += 1);
      const answer = await ctx.fetch(input, init);
      if (await at?.(own)) dead.abort(new Error('dead'));
      return answer;
    };
    const fetch = Object.assign(watched, { preconnect: ctx.fetch.preconnect });
    return fileDestination.open(
      { ...ctx, fetch } as unknown as ConnectorContext<never>,
      s3Target({ stream_run_id: 'run', ...target }),
    );
  };
  /** What a source reads of the table. */
  const rows = async (): Promise<string[]> => {
    const source = contextFor({ ...azure.settings, path: `${path}/t/*` });
    try {
      return (await readFiles(source)).rows.map(([id]) => id as string).toSorted();
    } catch (error) {
      if (error instanceof ConfigurationError && error.code === 'no_files') return [];
      throw error;
    }
  };
  return { open, rows, settings, contextFor, cleanUp: () => cleanUps.forEach((one) => one()) };
}

const batch = (...ids: number[]) => ({ rows: ids.map((id) => [String(id)]), bytes: ids.length });

/** Loads row 1 with a checkpoint and row 2 at the end, starting at the committed state. */
async function load(open: ReturnType<ReturnType<typeof place>['open']>): Promise<void> {
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

async function requestsOfLoad(): Promise<number> {
  const here = place();
  let most = 0;
  await load(here.open({ fence: 1 }, async (number) => (most = number) < 0));
  expect(await here.rows()).toEqual(['1', '2']);
  here.cleanUp();
  return most;
}

describe('every row exists exactly once in Azure', () => {
  test('if an attempt dies after any of its requests', async () => {
    const most = await requestsOfLoad();
    expect(most).toBeGreaterThan(12);
    for (let dies = 1; dies <= most; dies += 1) {
      const here = place();
      await load(here.open({ fence: 1 }, async (number) => number === dies)).catch(() => {});
      expect([[], ['1'], ['1', '2']]).toContainEqual(await here.rows());
      await load(here.open({ fence: 2 }));
      expect(await here.rows()).toEqual(['1', '2']);
      here.cleanUp();
    }
  });

  test('if another attempt starts at any moment of a live one', async () => {
    const most = await requestsOfLoad();
    for (let at = 1; at <= most; at += 1) {
      const here = place();
      let second: Promise<void> | undefined;
      const meet = async (number: number) => {
        if (number === at) await (second ??= load(here.open({ fence: 2 })));
        return false;
      };
      const error = await load(here.open({ fence: 1 }, meet)).then(
        () => null,
        (thrown: unknown) => thrown,
      );
      await second;
      if (error) expect(error).toBeInstanceOf(FencedError);
      expect(await here.rows()).toEqual(['1', '2']);
      here.cleanUp();
    }
  });

  test('if it is overwritten, in several blocks, with a shared access signature', async () => {
    const here = place({ ...keyless, account_key: undefined, sas_token: azure.sas('rlcwd') });
    await load(here.open({ fence: 1 }));
    const writer = await here.open({ fence: 2, mode: 'overwrite', stream_run_id: 'other' });
    const ids = Array.from({ length: 900_000 }, (_, id) => id);
    for (let from = 0; from < ids.length; from += 50_000) await writer.write(batch(...ids.slice(from, from + 50_000)));
    await writer.finish(null);
    const rows = await here.rows();
    expect([rows.length, new Set(rows).size]).toEqual([ids.length, ids.length]);
    here.cleanUp();
  });

  test('also if there is none', async () => {
    const here = place({ format: 'csv' });
    const writer = await here.open({ fence: 1, mode: 'overwrite' });
    await writer.finish(null);
    expect(await here.rows()).toEqual([]);
    here.cleanUp();
  });
});

test('the connection test names the right that a signature lacks', async () => {
  const check = async (more: object) => {
    const here = place(more);
    const ctx = here.contextFor(here.settings, { destination: true });
    const { checks } = await fileDestination.check(ctx as never, { schema: null });
    here.cleanUp();
    return checks.map(({ title, status }) => `${title}: ${status}`);
  };
  expect(await check({})).toEqual(['Container: passed', 'Write: passed', 'Delete: passed']);
  const limited = { ...keyless, account_key: undefined };
  expect(await check({ ...limited, sas_token: azure.sas('rlcw') })).toEqual([
    'Container: passed',
    'Write: passed',
    'Delete: failed',
  ]);
  expect(await check({ ...limited, sas_token: azure.sas('rl') })).toContain('Write: failed');
});

test('the settings of a destination need an account, and a key or a signature', () => {
  const parsed = parseParameters(fileDestination, { location: 'azure', bucket: 'data' });
  const missing = 'problems' in parsed ? parsed.problems.map(({ parameter }) => parameter) : [];
  expect(missing).toEqual(['storage_account', 'account_key']);
});
