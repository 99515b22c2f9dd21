import { spawn } from 'node:child_process';
import type { Cli } from '../context.ts';
import { UsageError } from '../exit.ts';
import { PAGES } from '../pages.ts';
import { findConnection } from './connections.ts';
import { findRun } from './runs.ts';

/** Opens a page of the console: by its name, or of a connection or a run. */
export async function open(cli: Cli, flags: { print: boolean }, wanted?: string): Promise<void> {
  const address = cli.login().url + (await pathOf(cli, wanted));
  if (flags.print) return cli.print(address);
  if (!(await openedInBrowser(cli, address)))
    throw new UsageError(`No browser could be started on this machine. Open ${address}`);
  cli.print(`Opened ${address}`);
}

export function openedInBrowser(cli: Cli, address: string): Promise<boolean> {
  const [program, ...args] = opener(cli.process.platform);
  const child = spawn(program!, [...args, address], { stdio: 'ignore' });
  return new Promise((resolve) => {
    child.on('error', () => resolve(false));
    child.on('close', (code) => resolve(code === 0));
  });
}

async function pathOf(cli: Cli, wanted: string | undefined): Promise<string> {
  if (wanted === undefined) return '/';
  if (wanted === 'docs') return '/docs';
  if (PAGES.includes(wanted)) return `/console/${wanted}`;
  const api = await cli.api();
  if (!/#\d+$/.test(wanted)) return `/console/connections/${(await findConnection(api, wanted)).id}`;
  const run = await findRun(api, wanted);
  return `/console/connections/${run.connection_id}/runs/${run.id}`;
}

const opener = (platform: string): string[] =>
  platform === 'darwin' ? ['open'] : platform === 'win32' ? ['cmd', '/c', 'start', ''] : ['xdg-open'];
