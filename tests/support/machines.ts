import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTcpProxy } from './tcp-proxy.ts';

/** A place for processes that share nothing but the network: it has a separate folder and, where possible, network stack. */
export interface Machine {
  /** In front of a command, to run it there. */
  on: string[];
  data_dir: string;
  /** Files below its folder, by name. */
  files(): string[];
  /** Pulls the network cable or plugs it in. Only where `isolated`. */
  cable(state: 'up' | 'down'): void;
}

export interface Machines {
  /** Network namespaces; else (no root, no such kernel) plain processes of this machine. */
  isolated: boolean;
  /** The address at which the machines reach a loopback port of this one. */
  reach(port: number): Promise<{ host: string; port: number }>;
  make(): Machine;
  close(): void;
}

const run = (...command: string[]) => {
  const done = Bun.spawnSync(command, { stdout: 'ignore', stderr: 'pipe' });
  if (!done.success) throw new Error(`${command.join(' ')}: ${done.stderr.toString()}`);
};

/** All of them are on one bridge with this machine. `close` removes everything; processes must have ended. */
export function makeMachines(): Machines {
  const mark = Math.floor(Math.random() * 0xffff)
    .toString(16)
    .padStart(4, '0');
  const net = `10.${200 + Math.floor(Math.random() * 50)}.${Math.floor(Math.random() * 256)}`;
  const bridge = `dp${mark}b`;
  const isolated = bringUp(bridge, `${net}.1/24`);
  const host = isolated ? `${net}.1` : '127.0.0.1';
  const folders: string[] = [];
  const spaces: string[] = [];
  const proxies: { stop(): void }[] = [];
  return {
    isolated,
    async reach(port) {
      const proxy = await startTcpProxy({ host: '127.0.0.1', port }, {}, host);
      proxies.push(proxy);
      return { host, port: proxy.port };
    },
    make() {
      const data_dir = mkdtempSync(join(tmpdir(), 'data-pipelines-machine-'));
      const number = folders.push(data_dir);
      const name = `dp${mark}n${number}`;
      if (isolated) plugIn(name, { bridge, address: `${net}.${number + 1}/24`, made: spaces });
      return {
        on: isolated ? ['ip', 'netns', 'exec', name] : [],
        data_dir,
        files: () => readdirSync(data_dir, { recursive: true }).map(String),
        cable: (state) => run('ip', 'link', 'set', `${name}h`, state),
      };
    },
    close() {
      for (const proxy of proxies) proxy.stop();
      for (const name of spaces) run('ip', 'netns', 'del', name);
      if (isolated) run('ip', 'link', 'del', bridge);
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    },
  };
}

function bringUp(bridge: string, address: string): boolean {
  try {
    run('ip', 'link', 'add', bridge, 'type', 'bridge');
  } catch {
    return false;
  }
  run('ip', 'address', 'add', address, 'dev', bridge);
  run('ip', 'link', 'set', bridge, 'up');
  return true;
}

function plugIn(name: string, { bridge, address, made }: { bridge: string; address: string; made: string[] }): void {
  run('ip', 'netns', 'add', name);
  made.push(name);
  run('ip', 'link', 'add', `${name}h`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
  run('ip', 'link', 'set', `${name}h`, 'master', bridge, 'up');
  run('ip', '-n', name, 'address', 'add', address, 'dev', 'eth0');
  for (const device of ['lo', 'eth0']) run('ip', '-n', name, 'link', 'set', device, 'up');
}
