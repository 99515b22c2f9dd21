import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { CommandError, UsageError } from './exit.ts';
import { saveFile } from './save-file.ts';

export interface Login {
  url: string;
  key: string;
}

const environment = process.env;

/** The only reader of the environment in the command line. */
export const variable = (name: string): string | undefined => environment[name];

export const wantsColours = (stream: { isTTY?: boolean }): boolean =>
  stream.isTTY === true && !environment.NO_COLOR && environment.TERM !== 'dumb';

/** The context of a login without a name. */
export const DEFAULT_CONTEXT = 'default';
const CONTEXT = /^\w[\w.-]{0,63}$/;

const folder = () => join(environment.XDG_CONFIG_HOME || join(homedir(), '.config'), 'data-pipelines');
const currentFile = () => join(folder(), 'context');
const loginFile = (context: string) =>
  join(folder(), context === DEFAULT_CONTEXT ? 'login.json' : `login.${context}.json`);

/** @throws UsageError for a name that cannot be part of a file name. */
export function checkedContext(name: string): string {
  if (CONTEXT.test(name)) return name;
  throw new UsageError(`"${name}" is not a context name: use letters, digits, dots, hyphens and underscores`);
}

let selected: string | null = null;

/** `--context`, before any command runs. */
export function selectContext(name: string): void {
  selected = checkedContext(name);
}

/** The context that the caller names for this command alone. */
const namedContext = (): string | null => selected ?? (environment.DATA_PIPELINES_CONTEXT || null);

export const currentContext = (): string => namedContext() ?? storedContext();

function storedContext(): string {
  try {
    return checkedContext(readFileSync(currentFile(), 'utf8').trim());
  } catch {
    return DEFAULT_CONTEXT;
  }
}

/** Every context with a login, by name. */
export function contexts(): { name: string; url: string; is_current: boolean }[] {
  const files = existsSync(folder()) ? readdirSync(folder()) : [];
  const names = files.flatMap((name) => {
    if (name === 'login.json') return [DEFAULT_CONTEXT];
    const found = /^login\.(.+)\.json$/.exec(name)?.[1];
    return found !== undefined && CONTEXT.test(found) ? [found] : [];
  });
  const current = currentContext();
  return names.toSorted().flatMap((name) => {
    const login = readLogin(name);
    return login ? [{ name, url: login.url, is_current: name === current }] : [];
  });
}

export function useContext(name: string): void {
  saveFile(currentFile(), `${name}\n`, 0o600);
}

/**
 * DATA_PIPELINES_URL and DATA_PIPELINES_KEY override what `login` stored, unless the caller names a context.
 * @throws CommandError (exit code 3) when neither is present.
 */
export function currentLogin(): Login {
  const named = namedContext();
  const context = named ?? storedContext();
  const stored = readLogin(context);
  const url = (named === null && environment.DATA_PIPELINES_URL) || stored?.url;
  const key = (named === null && environment.DATA_PIPELINES_KEY) || stored?.key;
  if (url && key) return { url: checkedUrl(url), key };
  const message =
    context === DEFAULT_CONTEXT
      ? 'Not signed in. Run `data-pipelines login`, or set DATA_PIPELINES_URL and DATA_PIPELINES_KEY'
      : `Not signed in to the context "${context}". Run \`data-pipelines login --context ${context}\``;
  throw new CommandError('authentication', message);
}

/** Keeps the path, below which a proxy may serve the service. @throws UsageError unless the text is an http(s) URL. */
export function checkedUrl(text: string): string {
  const url = URL.parse(text.includes('://') ? text : `https://${text}`);
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new UsageError(`"${text}" is not the URL of a service`);
  return url.origin + url.pathname.replace(/\/+$/, '');
}

export function readLogin(context = currentContext()): Login | null {
  try {
    const { url, key } = JSON.parse(readFileSync(loginFile(context), 'utf8'));
    return typeof url === 'string' && typeof key === 'string' ? { url, key } : null;
  } catch {
    return null;
  }
}

/** Stores the login readable by the user alone and returns the path. */
export function storeLogin(login: Login): string {
  const path = loginFile(currentContext());
  mkdirSync(folder(), { recursive: true, mode: 0o700 });
  saveFile(path, `${JSON.stringify(login, null, 2)}\n`, 0o600);
  return path;
}

export const forgetLogin = (context = currentContext()): void => rmSync(loginFile(context), { force: true });
