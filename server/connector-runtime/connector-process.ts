import type { PendingRequest, Recorder, StoredSecret, StreamSchema } from '../connectors/contract/connector.ts';
import { ConfigurationError } from '../connectors/contract/errors.ts';
import { parseParameters } from '../connectors/contract/parameters.ts';
import { findConnector } from '../connectors/registry.ts';
import { type ParentCalls, serveJobs } from '../platform/limited-process/child.ts';
import { type BuiltConnector, buildConnector } from './build-connector.ts';
import type { CallJob, ConnectorItem, ConnectorJob, LockedSecret, ParseJob } from './connector-job.ts';

const SILENT: PendingRequest = { done: () => {}, failed: () => {} };

async function* doJob(job: ConnectorJob, parent: ParentCalls): AsyncGenerator<ConnectorItem> {
  if (job.operation === 'parse') yield { parsed: parsed(job) };
  else yield* callConnector(job, parent);
}

function parsed({ type, name, parameters }: ParseJob) {
  const connector = findConnector(type, name);
  if (!connector) throw new ConfigurationError('unknown_connector', `Unknown connector ${name}`);
  return parseParameters(connector, parameters);
}

/** One call of a connector. What it opens is closed at its end. */
async function* callConnector(job: CallJob, parent: ParentCalls): AsyncGenerator<ConnectorItem> {
  const abort = new AbortController();
  const cleanUps: (() => Promise<void>)[] = [];
  const clock = job.now_ms - Date.now();
  try {
    const built = buildConnector(job.settings, {
      recorder: tunnelRecorder(parent),
      signal: abort.signal,
      cleanUp: (end) => void cleanUps.push(end),
      reach: async (host) => void (await parent.ask('reach', host)),
      pin: async (fingerprint) => void (await parent.ask('pin', fingerprint)),
      warn: (code, message) => parent.note('warn', code, message),
      rateLimited: (until) => parent.note('rateLimited', until.getTime()),
      log: {
        info: (message, fields) => parent.note('info', message, fields),
        warn: (message, fields) => parent.note('logWarning', message, fields),
      },
      now: () => new Date(Date.now() + clock),
      rotateSecret: (given, work) => rotateSecret(parent, given, work),
    });
    yield* resultOf(built, job);
  } finally {
    abort.abort();
    await Promise.allSettled(cleanUps.map((end) => end()));
  }
}

async function* resultOf({ connector, ctx }: BuiltConnector, job: CallJob): AsyncGenerator<ConnectorItem> {
  switch (job.operation) {
    case 'check':
      yield { check: await connector.check(ctx) };
      return;
    case 'possible_values': {
      const list = connector.possibleValues?.[job.parameter];
      if (!list) {
        throw new ConfigurationError('parameter_not_dynamic', `The values of ${job.parameter} cannot be listed`);
      }
      yield { values: await list(ctx) };
      return;
    }
    case 'channels':
      if (connector.type === 'destination' && connector.channels) yield { channels: await connector.channels(ctx) };
      return;
    case 'discover': {
      // One by one: the service reads a large catalog without a pause.
      const streams: StreamSchema[] = connector.type === 'source' ? await connector.discover(ctx) : [];
      for (const stream of streams) yield { stream };
    }
  }
}

/** Reports logins to an SSH server, and nothing else: network logs belong to runs. */
const tunnelRecorder = (parent: ParentCalls): Recorder => ({
  start: ({ url }) => (url.startsWith('ssh://') ? { ...SILENT, done: () => parent.note('tunnel', url) } : SILENT),
});

async function rotateSecret<Result>(
  parent: ParentCalls,
  given: string,
  work: (stored: StoredSecret) => Promise<Result>,
): Promise<Result> {
  const { lock, current } = (await parent.ask('lockSecret', given)) as LockedSecret;
  const replace = async (used: string, replacement: string) =>
    (await parent.ask('replaceSecret', lock, used, replacement)) === true;
  try {
    return await work({ current, replace });
  } finally {
    await parent.ask('unlockSecret', lock);
  }
}

serveJobs(doJob);
