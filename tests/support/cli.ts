import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'bun:test';
import { until } from './until.ts';

/** Compiled in check: see service-bundle.ts. */
export const CLI = process.env.CLI_BUNDLE ?? join(import.meta.dir, '../../client/cli/main.ts');
const WAITED_MS = 20_000;

export interface Ended {
  code: number;
  out: string;
  err: string;
}

/** A command in a pseudo-terminal. */
export interface Session {
  /** Everything written so far, without escape sequences. */
  screen(): string;
  /** Waits until the text appears after the previously awaited text. */
  sees(text: string): Promise<void>;
  type(keys: string): void;
  ended(): Promise<number>;
}

/** The command line as a subprocess with its own configuration folder. */
export function commandLine(login: { url?: string; key?: string } = {}, program = [process.execPath, CLI]) {
  const folder = mkdtempSync(join(tmpdir(), 'cli-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    XDG_CONFIG_HOME: join(folder, 'config'),
    TZ: 'UTC',
    TERM: 'xterm-256color',
    ...(login.url && { DATA_PIPELINES_URL: login.url }),
    ...(login.key && { DATA_PIPELINES_KEY: login.key }),
  };
  return {
    folder,
    file: join(folder, 'config/data-pipelines/login.json'),
    async run(args: string[], options: { input?: string; env?: Record<string, string> } = {}): Promise<Ended> {
      const child = Bun.spawn([...program, ...args], {
        cwd: folder,
        env: { ...env, ...options.env },
        stdin: new Blob([options.input ?? '']),
        stdout: 'pipe',
        stderr: 'pipe',
      });
      const [out, err, code] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ]);
      return { code, out, err };
    },
    terminal(args: string[], options: { columns?: number; env?: Record<string, string> } = {}): Session {
      let raw = '';
      let seen = 0;
      const decoder = new TextDecoder();
      const child = Bun.spawn([...program, ...args], {
        cwd: folder,
        env: { ...env, ...options.env },
        terminal: {
          cols: options.columns ?? 120,
          rows: 40,
          data: (_, bytes) => void (raw += decoder.decode(bytes, { stream: true })),
        },
      });
      afterAll(() => child.kill('SIGKILL'));
      const screen = () => Bun.stripANSI(raw);
      return {
        screen,
        type: (keys) => void child.terminal!.write(keys),
        async sees(text) {
          await until(() => screen().includes(text, seen), { timeout_ms: WAITED_MS, what: text }).catch(
            (error: Error) => {
              throw new Error(`${error.message}\n${screen().slice(-2000)}`);
            },
          );
          seen = screen().indexOf(text, seen) + text.length;
        },
        ended: () => child.exited,
      };
    },
  };
}
