import type { ApiClient } from '../../api.ts';
import type { Cli } from '../context.ts';
import { CommandError } from '../exit.ts';
import { colouredStatus, duration, moment, number } from '../style.ts';
import { table } from '../table.ts';
import { findConnection } from './connections.ts';

export type Verification = Awaited<ReturnType<ApiClient['verifications']['get']['query']>>;
type VerifiedStream = Verification['streams'][number];

const LOOK_EVERY_MS = 500;

export interface Verifying {
  json: boolean;
  repair: boolean;
  stream?: readonly string[];
}

/** Verifies a connection and waits for the result. Ctrl-C stops it. */
export async function verify(cli: Cli, flags: Verifying, wanted: string): Promise<void> {
  const api = await cli.api();
  const { id } = await findConnection(api, wanted);
  const stream_names = flags.stream && flags.stream.length > 0 ? [...flags.stream] : null;
  const request = { stream_names, repair: flags.repair };
  const verification_id = await api.verifications.start.mutate({ connection_id: id, request });
  const ended = await followVerification(cli, api, verification_id, LOOK_EVERY_MS);
  if (flags.json) cli.document = ended;
  else show(cli, ended);
  if (ended.status === 'stopped') throw new CommandError('stopped', 'Verification stopped');
  if (ended.status !== 'succeeded') throw new CommandError('failed', failureOf(ended));
}

/** Waits for the result. Ctrl-C stops the verification. */
export async function followVerification(
  cli: Cli,
  api: ApiClient,
  verification_id: string,
  look_every_ms: number,
): Promise<Verification> {
  const interrupt = () => {
    cli.note('Stop requested');
    // The next look shows the outcome.
    api.verifications.stop.mutate({ verification_id }).catch(() => {});
  };
  cli.process.on('SIGINT', interrupt);
  try {
    for (;;) {
      const current = await api.verifications.get.query({ verification_id });
      if (current.finished_at !== null) return current;
      await new Promise((resolve) => setTimeout(resolve, look_every_ms));
    }
  } finally {
    cli.process.off('SIGINT', interrupt);
  }
}

function show(cli: Cli, { streams, finished_at }: Verification): void {
  cli.print(
    table(cli, streams, {
      columns: {
        stream: nameOf,
        result: ({ status }) => colouredStatus(cli.style, status),
        source: ({ source_rows }) => number(source_rows),
        destination: ({ destination_rows }) => number(destination_rows),
        missing: ({ missing }) => number(missing),
        extra: ({ extra }) => number(extra),
        different: ({ different }) => number(different),
        'changed since': ({ changed_since }) => number(changed_since),
        repaired: ({ repaired }) => number(repaired),
        note: noteOf,
      },
      wide: { took: ({ duration_ms }) => duration(duration_ms) },
    }),
  );
  for (const stream of streams) {
    for (const { kind, key, changed_since } of stream.differences) {
      if (changed_since !== true) cli.print(`${nameOf(stream)}: ${kind} ${key.join(', ')}`);
    }
  }
  cli.print(cli.style('dim', `Compared at ${moment(finished_at)}`));
}

function noteOf({ reason, columns_not_compared, is_partial, keeps_deleted, extra }: VerifiedStream): string {
  const notes = [
    ...(reason ? [reason.message] : []),
    ...(columns_not_compared.length > 0
      ? [`not compared: ${columns_not_compared.map((one) => `${one.name} (${one.reason})`).join(', ')}`]
      : []),
    ...(keeps_deleted && extra > 0 ? ['deleted rows stay in the destination'] : []),
    ...(is_partial ? ['the search ended early'] : []),
  ];
  return notes.join('; ');
}

export const nameOf = ({ namespace, stream_name }: VerifiedStream) =>
  namespace ? `${namespace}.${stream_name}` : stream_name;

function failureOf({ error, streams }: Verification): string {
  if (error) return `Verification failed: ${error.message} (${error.code})`;
  const different = streams.filter(({ status }) => status === 'different').map(nameOf);
  return `Source and destination differ in ${different.join(', ')}`;
}
