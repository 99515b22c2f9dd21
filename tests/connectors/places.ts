import { mkdtemp, readdir, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type {
  AnyConnector,
  Cell,
  ConnectorContext,
  Inbox,
  TargetColumn,
} from '../../server/connectors/contract/connector.ts';
import { parseParameters } from '../../server/connectors/contract/parameters.ts';
import { directConnect } from '../../server/connector-runtime/sockets.ts';

/** An environment for testing one connector. */
export interface Place {
  filesRoot: string;
  /** Valid settings. */
  good: Record<string, unknown>;
  /** Well-formed settings that do not work, by what is wrong. */
  bad: Record<string, Record<string, unknown>>;
  /** Connections and files that are open now. */
  leftOpen(): Promise<number>;
  /** Destinations: the rows of a table as another reader sees them, in any order; null when there is no table. */
  readTable?(table: string, columns: TargetColumn[]): Promise<Cell[][] | null>;
  /** Sources that receive events. */
  inbox?: Inbox;
  close(): Promise<void>;
}

export function contextOf(
  connector: AnyConnector,
  place: Pick<Place, 'filesRoot'> & Partial<Pick<Place, 'good' | 'inbox'>>,
  more: { settings?: object; signal?: AbortSignal } = {},
) {
  const parsed = parseParameters(connector, more.settings ?? place.good);
  if ('problems' in parsed) throw new Error(JSON.stringify(parsed.problems));
  const signal = more.signal ?? new AbortController().signal;
  const context: ConnectorContext<unknown> = {
    config: parsed.config,
    fetch,
    connect: directConnect({ allow: [], internal: true }, signal),
    recorder: { start: () => ({ done() {}, failed() {} }) },
    log: { info() {}, warn() {} },
    now: () => new Date('2026-11-21T10:00:00Z'),
    signal,
    filesRoot: place.filesRoot,
    ...(place.inbox && { inbox: place.inbox }),
    warn() {},
    rateLimited() {},
  };
  return context;
}

export async function folderPlace() {
  const filesRoot = await mkdtemp(join(tmpdir(), 'data-pipelines-files-'));
  const leftOpen = async () => {
    const links = await Promise.all(
      (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
    );
    return links.filter((path) => path.startsWith(filesRoot)).length;
  };
  return { filesRoot, leftOpen, bad: {}, close: () => rm(filesRoot, { recursive: true, force: true }) };
}
