import type { ApiClient } from '../api.ts';
import type { Cli } from './context.ts';
import { CommandError, type Outcome } from './exit.ts';
import { colouredStatus, duration, number, plural, printable } from './style.ts';
import type { Run, StreamRun } from './run.ts';

interface Progress {
  run: Run;
  stream_runs: StreamRun[];
}

const OUTCOMES: Record<string, Outcome> = {
  succeeded: 'ok',
  partially_succeeded: 'partially_succeeded',
  stopped: 'stopped',
};
const BAR = 24;
const SPINNING_MS = 100;
const STREAMS_SHOWN = 20;

/**
 * Shows a run until it ends. The first Ctrl-C requests a stop, the second detaches.
 * @throws CommandError with the outcome, unless the run succeeded.
 */
export async function followRun(
  cli: Cli,
  { api, run, json }: { api: ApiClient; run: { connection_id: string; id: string }; json: boolean },
): Promise<void> {
  const screen = json ? null : cli.process.stdout.isTTY ? liveScreen(cli) : plainScreen(cli);
  const leave = onInterrupt(cli, { api, id: run.id, note: screen ? screen.note : cli.note });
  try {
    const last = await watch(api, { run, seen: (progress) => screen?.show(progress), left: leave.left });
    if (json) cli.document = last;
    else cli.print(summary(cli, last));
    const outcome = OUTCOMES[last.run.status] ?? 'failed';
    if (outcome !== 'ok')
      throw new CommandError(
        outcome,
        `Run ${last.run.status.replace('_', ' ')}${last.run.error ? `: ${last.run.error.message} (${last.run.error.code})` : ''}`,
      );
  } finally {
    screen?.end();
    leave.end();
  }
}

function watch(
  api: ApiClient,
  {
    run,
    seen,
    left,
  }: { run: { connection_id: string; id: string }; seen(progress: Progress): void; left: Promise<never> },
): Promise<Progress> {
  let last: Progress | null = null;
  const ended = new Promise<Progress>((resolve, reject) => {
    const subscription = api.runs.progress.subscribe(
      { connection_id: run.connection_id, connection_run_id: run.id },
      {
        onData: (progress) => seen((last = progress)),
        onComplete: () =>
          last
            ? resolve(last)
            : reject(
                new CommandError('unavailable', 'The service closed the progress stream before it reported the run'),
              ),
        onError: reject,
      },
    );
    left.catch((error: unknown) => {
      reject(error);
      subscription.unsubscribe();
    });
  });
  return ended;
}

/** `left` rejects when the user detaches. */
function onInterrupt(cli: Cli, { api, id, note }: { api: ApiClient; id: string; note(text: string): void }) {
  let asked = false;
  let reject: (reason: unknown) => void = () => {};
  const left = new Promise<never>((_resolve, refuse) => (reject = refuse));
  left.catch(() => {});
  const interrupt = () => {
    if (asked)
      return reject(
        new CommandError('interrupted', `Detached while the run is stopping; \`runs show ${id}\` shows the result`),
      );
    asked = true;
    note('Stop requested. Press Ctrl-C again to detach');
    api.runs.stop.mutate({ connection_run_id: id }).catch(reject);
  };
  cli.process.on('SIGINT', interrupt);
  return { left, end: () => void cli.process.off('SIGINT', interrupt) };
}

interface Screen {
  show(progress: Progress): void;
  note(text: string): void;
  end(): void;
}

/** Redraws in place. */
function liveScreen(cli: Cli): Screen {
  let drawn = 0;
  let last: Progress | null = null;
  let notes: string[] = [];
  const rates = new Map<string, Rate>();
  const draw = () => {
    if (!last) return;
    const lines = [...linesOf(cli, last, rates), ...notes].map((line) => `\u001b[2K${printable(line)}`);
    const up = drawn > 0 ? `\u001b[${drawn}A\r` : '';
    cli.process.stdout.write(`${up}${lines.join('\n')}\n\u001b[0J`);
    drawn = lines.length;
  };
  const timer = setInterval(draw, SPINNING_MS);
  return {
    show: (progress) => {
      last = progress;
      for (const stream of progress.stream_runs) measure(rates, stream);
      draw();
    },
    note: (text) => {
      notes = [...notes, text];
      draw();
    },
    end: () => clearInterval(timer),
  };
}

/** Prints one line per status change, for logs. */
function plainScreen(cli: Cli): Screen {
  const known = new Map<string, string>();
  return {
    show({ run, stream_runs }) {
      for (const { id, name, status, rows } of [
        { id: run.id, name: 'run', status: run.status, rows: run.rows_loaded },
        ...stream_runs.map((one) => ({ id: one.id, name: nameOf(one), status: one.status, rows: one.rows_loaded })),
      ]) {
        if (known.get(id) !== status) cli.print(`${name}: ${status}, ${plural(rows, 'row')}`);
        known.set(id, status);
      }
    },
    note: cli.note,
    end: () => {},
  };
}

interface Rate {
  at: number;
  rows: number;
  perSecond: number;
}

/** Rows read count as progress: they are loaded only at the next commit. */
const moved = ({ rows_loaded, rows_read }: { rows_loaded: number; rows_read: number }) =>
  Math.max(rows_loaded, rows_read);

/** Rows per second between the last two updates with different counts. */
function measure(rates: Map<string, Rate>, { id, rows_loaded, rows_read }: StreamRun): void {
  const now = performance.now();
  const rows = moved({ rows_loaded, rows_read });
  const before = rates.get(id);
  if (!before) rates.set(id, { at: now, rows, perSecond: 0 });
  else if (rows !== before.rows) {
    rates.set(id, { at: now, rows, perSecond: ((rows - before.rows) * 1000) / Math.max(1, now - before.at) });
  }
}

function linesOf(cli: Cli, { run, stream_runs }: Progress, rates: Map<string, Rate>): string[] {
  const room = cli.process.stdout.columns || 80;
  const widest = Math.max(...stream_runs.map((one) => nameOf(one).length), 6);
  const name = Math.min(widest, Math.max(8, room - 70));
  const urgent = ({ status }: StreamRun) =>
    ['running', 'retrying', 'rate_limited', 'failed'].includes(status) ? 0 : 1;
  const shown = stream_runs.toSorted((a, b) => urgent(a) - urgent(b)).slice(0, STREAMS_SHOWN);
  const lines = shown.map((one) => {
    const rate = rates.get(one.id)?.perSecond ?? 0;
    const speed = one.status === 'running' && rate > 0 ? `${number(Math.round(rate))} rows/s` : '';
    const cut = nameOf(one).length > name ? `${nameOf(one).slice(0, name - 1)}…` : nameOf(one);
    return `${cut.padEnd(name)} ${bar(cli, one)} ${number(moved(one)).padStart(13)} ${padded(cli, one.status, 12)} ${speed}`;
  });
  const more = stream_runs.length - shown.length;
  const head = `Run #${run.number} ${colouredStatus(cli.style, run.status)} ${plural(moved(run), 'row')}`;
  return [head, ...lines, ...(more > 0 ? [cli.style('dim', `and ${plural(more, 'more stream')}`)] : [])];
}

export const nameOf = ({ namespace, stream_name }: StreamRun) =>
  namespace ? `${namespace}.${stream_name}` : stream_name;
const padded = (cli: Cli, status: string, room: number) =>
  colouredStatus(cli.style, status) + ' '.repeat(Math.max(0, room - status.length));

/** Without an estimate, a moving mark. */
function bar(cli: Cli, { status, progress_percent }: StreamRun): string {
  const ended = ['succeeded', 'failed', 'stopped', 'skipped'].includes(status);
  if (progress_percent !== null || ended || status === 'pending') {
    const full = Math.round((BAR * (progress_percent ?? 0)) / 100);
    return cli.style('cyan', '█'.repeat(full)) + cli.style('dim', '░'.repeat(BAR - full));
  }
  const at = Math.floor(performance.now() / SPINNING_MS) % BAR;
  return cli.style('dim', '░'.repeat(at)) + cli.style('cyan', '█') + cli.style('dim', '░'.repeat(BAR - at - 1));
}

function summary(cli: Cli, { run }: Progress): string {
  const seconds = Math.max(0.001, (run.duration_ms ?? 0) / 1000);
  const speed = `${number(Math.round(run.rows_loaded / seconds))} rows/s`;
  return `${colouredStatus(cli.style, run.status)}: ${plural(run.rows_loaded, 'row')} in ${duration(run.duration_ms)}, ${speed}`;
}
