import type { ApiClient } from '../../../api.ts';
import type { Cli } from '../../context.ts';
import { CommandError } from '../../exit.ts';
import { number } from '../../style.ts';
import { table } from '../../table.ts';
import { type Connection, findConnection } from '../connections.ts';
import { requireConfirmation } from '../session.ts';
import { cutOver, type CutOver } from './cut-over.ts';
import { failedStreams, untilCaughtUp } from './follow-log.ts';
import { verifyAll } from './verify-all.ts';
import type { Migrating, Migration } from './migration.ts';
const DEFAULT_MAX_LAG_SECONDS = 10;
const END_MS = 50;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Copies, follows, verifies and cuts over. Nothing is changed at the source. */
export async function migrate(cli: Cli, flags: Migrating, wanted: string): Promise<void> {
  const api = await cli.api();
  const connection = await followContinuously(cli, api, await findConnection(api, wanted));
  const migration = { cli, api, connection, flags };
  await untilCaughtUp(migration, flags.maxLag ?? DEFAULT_MAX_LAG_SECONDS);
  cli.note('Verifying while the application writes');
  const verified = await verifyAll(migration, { isQuiet: false });
  await requireSequences(migration);
  const stop = flags.stopWrites ? `This runs: ${flags.stopWrites}` : 'Stop all writes to it first';
  await requireConfirmation(cli, {
    yes: flags.yes,
    message: `Cut over from "${connection.source.name}" to "${connection.destination.name}"? ${stop}.`,
  });
  const result = await cutOver(migration, verified!);
  if (flags.json) cli.document = { connection_id: connection.id, ...result };
  else show(migration, result);
}

async function followContinuously(cli: Cli, api: ApiClient, connection: Connection): Promise<Connection> {
  const { id: connection_id, schedule, status, active_run_id } = connection;
  if (schedule.type === 'continuous' && status === 'active') {
    const failed = active_run_id === null ? [] : await failedStreams(api, active_run_id);
    if (active_run_id !== null && failed.length > 0) {
      cli.note('The next run begins, which tries the streams again that have failed');
      await endRun({ api, connection_id, active_run_id });
      await api.runs.run.mutate({ connection_id });
    }
    return connection;
  }
  cli.note('The schedule becomes continuous: one run copies the tables and follows the log');
  return api.connections.update.mutate({
    connection_id,
    status: 'active',
    schedule: { type: 'continuous', timezone: schedule.timezone },
  });
}

async function endRun({
  api,
  connection_id,
  active_run_id,
}: {
  api: ApiClient;
  connection_id: string;
  active_run_id: string;
}) {
  await api.runs.stop.mutate({ connection_run_id: active_run_id });
  while ((await api.connections.get.query({ connection_id })).active_run_id === active_run_id) await sleep(END_MS);
}

/** Inserts of the application would fail without them. */
async function requireSequences({ api, connection }: Migration): Promise<void> {
  const request = { dry_run: true };
  const found = await api.cut_over.advanceSequences.mutate({ connection_id: connection.id, request });
  const statements = found.flatMap(({ statement }) => statement ?? []);
  if (statements.length === 0) return;
  const lines = statements.map((one) => `  ${one};`).join('\n');
  throw new CommandError(
    'failed',
    `The destination lacks sequences of the source. Create them, then repeat the command:\n${lines}`,
  );
}

function show({ cli, connection }: Migration, { sequences, pause_ms, steps_ms, verification_id }: CutOver): void {
  if (sequences.length > 0) {
    cli.print(
      table(cli, sequences, {
        columns: {
          sequence: ({ destination_sequence }) => destination_sequence ?? '–',
          columns: ({ columns }) => columns.join(', '),
          source: ({ source_value }) => source_value ?? '–',
          before: ({ value_before }) => value_before ?? '–',
          after: ({ value_after }) => value_after ?? '–',
        },
      }),
    );
  }
  const steps = Object.entries(steps_ms).map(([name, ms]) => `${name} ${number(ms)} ms`);
  cli.print(`Pause of the application: ${number(pause_ms)} ms (${steps.join(', ')})`);
  cli.print(`Certificate: verification ${verification_id}`);
  cli.print('Next:');
  cli.print(`  1. Start the application on "${connection.destination.name}"`);
  cli.print(`  2. Once you will not go back, run: data-pipelines connections delete "${connection.name}"`);
}
