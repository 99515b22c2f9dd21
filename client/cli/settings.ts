import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { CommandError, UsageError } from './exit.ts';

export interface Login {
  url: string;
  key: string;
}

const environment = process.env;

/** The only reader of the environment in the command line. */
export const variable = (name: string): string | undefined => environment[name];

export const wantsColours = (stream: { isTTY?: boolean }): boolean =>
  stream.isTTY === true && !environment.NO_COLOR && environment.TERM !== 'dumb';

const file = () => join(environment.XDG_CONFIG_HOME || join(homedir(), '.config'), 'data-pipelines', 'login.json');

/**
 * DATA_PIPELINES_URL and DATA_PIPELINES_KEY override what `login` stored.
 * @throws CommandError (exit code 3) when neither is present.
 */
export function currentLogin(): Login {
  const stored = readLogin();
  const url = environment.DATA_PIPELINES_URL || stored?.url;
  const key = environment.DATA_PIPELINES_KEY || stored?.key;
  if (!url || !key)
    throw new CommandError(
      'authentication',
      'Not signed in. Run `data-pipelines login`, or set DATA_PIPELINES_URL and DATA_PIPELINES_KEY',
    );
  return { url: checkedUrl(url), key };
}

/** @throws UsageError unless the text is an http(s) URL. */
export function checkedUrl(text: string): string {
  const url = URL.parse(text.includes('://') ? text : `https://${text}`);
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new UsageError(`"${text}" is not the URL of a service`);
  return url.origin;
}

export function readLogin(): Login | null {
  try {
    const { url, key } = JSON.parse(readFileSync(file(), 'utf8'));
    return typeof url === 'string' && typeof key === 'string' ? { url, key } : null;
  } catch {
    return null;
  }
}

/** Stores the login readable by the user alone and returns the path. */
export function storeLogin(login: Login): string {
  const path = file();
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, `${JSON.stringify(login, null, 2)}\n`, { mode: 0o600 });
  // `mode` applies only when the file is new.
  chmodSync(path, 0o600);
  return path;
}

export const forgetLogin = (): void => rmSync(file(), { force: true });
