import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { Refused, UsageError } from './exit.ts';

/** Where the service is and as whom. */
export interface Login {
  url: string;
  key: string;
}

const environment = process.env;

/** The one place that reads the environment of the command line. */
export const variable = (name: string): string | undefined => environment[name];

export const wantsColours = (stream: { isTTY?: boolean }): boolean =>
  stream.isTTY === true && !environment.NO_COLOR && environment.TERM !== 'dumb';

const file = () => join(environment.XDG_CONFIG_HOME || join(homedir(), '.config'), 'data-pipelines', 'login.json');

/**
 * DATA_PIPELINES_URL and DATA_PIPELINES_KEY win over what `login` stored.
 * @throws Refused (exit code 3) when there is neither.
 */
export function currentLogin(): Login {
  const stored = readLogin();
  const url = environment.DATA_PIPELINES_URL || stored?.url;
  const key = environment.DATA_PIPELINES_KEY || stored?.key;
  if (!url || !key)
    throw new Refused(
      'authentication',
      'Not signed in: run `data-pipelines login`, or set DATA_PIPELINES_URL and DATA_PIPELINES_KEY',
    );
  return { url: checkedUrl(url), key };
}

/** @throws UsageError for what is no http address. */
export function checkedUrl(text: string): string {
  const url = URL.parse(text.includes('://') ? text : `https://${text}`);
  if (!url || !['http:', 'https:'].includes(url.protocol)) throw new UsageError(`"${text}" is no address of a service`);
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

/** Readable by the user alone. Answers with the path. */
export function storeLogin(login: Login): string {
  const path = file();
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, `${JSON.stringify(login, null, 2)}\n`, { mode: 0o600 });
  // The mode counts only for a new file.
  chmodSync(path, 0o600);
  return path;
}

export const forgetLogin = (): void => rmSync(file(), { force: true });
