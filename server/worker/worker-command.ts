import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { SILENT_MS } from '../platform/watched-process.ts';

/** What a supervised worker process is started with. */
export interface WorkerFlags {
  /** Set for a supervised worker: it ends when standard input ends, which happens however the parent process ends. */
  supervised: boolean;
  /** Identity of the process in its claims. */
  worker_id: string;
  /** Workers that died. This one takes up their streams. */
  replaces: string[];
  /** Execute this stream run alone, then end. */
  stream_run_id: string | null;
  /** The span of the stream run that is executed alone. Null: there is none. */
  traceparent: string | null;
  /** How long the event loop of a process that executes a stream alone may be blocked. */
  silent_ms: number;
}

const OPTIONS = {
  'until-stdin-ends': { type: 'boolean', default: false },
  'worker-id': { type: 'string' },
  replaces: { type: 'string', default: '' },
  'stream-run': { type: 'string' },
  traceparent: { type: 'string' },
  'silent-ms': { type: 'string', default: String(SILENT_MS) },
} as const;

/** The command of a worker process that ends with its parent. */
export function workerCommand(flags: Partial<Omit<WorkerFlags, 'supervised'>> = {}): string[] {
  const { worker_id, replaces = [], stream_run_id, traceparent, silent_ms } = flags;
  const command = [process.execPath, join(import.meta.dir, '../main.ts'), 'worker', '--until-stdin-ends'];
  if (worker_id !== undefined) command.push(`--worker-id=${worker_id}`);
  if (replaces.length > 0) command.push(`--replaces=${replaces.join()}`);
  if (stream_run_id != null) command.push(`--stream-run=${stream_run_id}`);
  if (traceparent != null) command.push(`--traceparent=${traceparent}`);
  if (silent_ms !== undefined) command.push(`--silent-ms=${silent_ms}`);
  return command;
}

export function readWorkerFlags(args: string[]): WorkerFlags {
  const { values } = parseArgs({ args, options: OPTIONS, strict: false, allowPositionals: true });
  const replaces = String(values.replaces);
  return {
    supervised: values['until-stdin-ends'] === true,
    worker_id: typeof values['worker-id'] === 'string' ? values['worker-id'] : Bun.randomUUIDv7(),
    replaces: replaces === '' ? [] : replaces.split(','),
    stream_run_id: typeof values['stream-run'] === 'string' ? values['stream-run'] : null,
    traceparent: typeof values.traceparent === 'string' ? values.traceparent : null,
    silent_ms: Number(values['silent-ms']),
  };
}
