import { spawn } from 'node:child_process';
import { CommandError } from '../../exit.ts';
import type { Verification } from '../verify.ts';
import { reachEnd } from './follow-log.ts';
import { verifyAll } from './verify-all.ts';
import type { Migration, Sequences } from './migration.ts';

const DEFAULT_WAIT_SECONDS = 600;
const AGAIN_MS = 1000;
const LOOK_EVERY_MS = 50;

export interface CutOver {
  pause_ms: number;
  steps_ms: Record<string, number>;
  position: string;
  verification_id: string;
  sequences: Sequences;
}

/** The source is still written to. */
class StillWritten extends Error {}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Waits until the source stands still and everything is applied, and ends the connection. The pause begins when the
 * application is stopped; without knowing when, with the attempt in which nothing was written any more.
 */
export async function cutOver(migration: Migration, verified: Verification): Promise<CutOver> {
  const { cli, flags } = migration;
  const { wait = DEFAULT_WAIT_SECONDS, stopWrites, yes } = flags;
  const begun = performance.now();
  if (stopWrites) await runShell(stopWrites);
  const stopped = performance.now();
  const isKnown = stopWrites !== undefined || !yes;
  for (;;) {
    const attempt = performance.now();
    try {
      const first: Record<string, number> = isKnown
        ? { stop: Math.round(stopped - begun), wait: Math.round(attempt - stopped) }
        : {};
      return await attemptOnce(migration, { from: isKnown ? begun : attempt, first, verified });
    } catch (error) {
      if (!(error instanceof StillWritten)) throw error;
      if (performance.now() - stopped > wait * 1000) {
        throw new CommandError('failed', `${error.message}. Nothing was cut over, and the connection goes on`);
      }
      cli.note(error.message);
      await sleep(AGAIN_MS);
    }
  }
}

async function attemptOnce(
  migration: Migration,
  { from, first, verified }: { from: number; first: Record<string, number>; verified: Verification },
): Promise<CutOver> {
  const { api, connection, flags } = migration;
  const connection_id = connection.id;
  const steps_ms = { ...first };
  let last = performance.now();
  const step = (name: string) => {
    const now = performance.now();
    steps_ms[name] = Math.round(now - last);
    last = now;
  };
  const before = await requireQuiet(migration, null);
  step('apply');
  const verification = flags.verifyOnce ? verified : await verifyAll(migration, { isQuiet: true });
  if (!verification) throw new StillWritten('The source has changed while it was verified');
  step('verify');
  const sequences = await api.cut_over.advanceSequences.mutate({ connection_id });
  step('sequences');
  const { position } = await requireQuiet(migration, before.rows_applied);
  step('check');
  await endRun(migration);
  step('end');
  const pause_ms = Math.round(last - from);
  return { pause_ms, steps_ms, position, verification_id: verification.id, sequences };
}

/** @param rows_before what had been applied when the source was thought to stand still */
async function requireQuiet(migration: Migration, rows_before: number | null) {
  const end = await reachEnd(migration);
  if (end.open_writers) {
    throw new StillWritten(`${end.open_writers} open transactions have written to the tables of the source`);
  }
  if (rows_before === null || end.rows_applied === rows_before) return end;
  throw new StillWritten('The source is still written to');
}

/** From here on, nothing but the application writes to the destination. */
async function endRun({ api, connection: { id } }: Migration): Promise<void> {
  await api.connections.update.mutate({ connection_id: id, status: 'paused' });
  for (;;) {
    const { active_run_id } = await api.connections.get.query({ connection_id: id });
    if (active_run_id === null) return;
    await sleep(LOOK_EVERY_MS);
  }
}

/** Its output does not mix with the result. */
async function runShell(command: string): Promise<void> {
  const child = spawn(command, { shell: true, stdio: ['ignore', 2, 2] });
  const code = await new Promise<number | null>((resolve, reject) =>
    child.once('error', reject).once('close', resolve),
  );
  if (code !== 0)
    throw new CommandError('failed', `The command that stops the application ended with ${code}: ${command}`);
}
