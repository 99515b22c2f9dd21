import { readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, normalize } from 'node:path';
import { guardedFetch } from './net/guarded-fetch.ts';

/** `env:NAME`, `file:/path` and `vault:path#field` name a place that a secret is read from when it is needed. */
const REFERENCE = /^(env:[A-Za-z_][A-Za-z0-9_]{0,200}|file:\/[^\0]{1,1000}|vault:[^\0#]{1,500}#[^\0#]{1,200})$/;
const MAX_BYTES = 65_536;
const TIMEOUT_MS = 10_000;

export const isReference = (value: unknown): value is string => typeof value === 'string' && REFERENCE.test(value);

/** Why a reference gives no secret. `unreachable` may pass by itself. */
export class ReferenceError extends Error {
  constructor(
    readonly reason: 'not_allowed' | 'not_found' | 'refused' | 'unreachable',
    message: string,
  ) {
    super(message);
    this.name = 'ReferenceError';
  }
}

/** Where `vault:` is read. */
export interface VaultSettings {
  VAULT_ADDR: string | null;
  /** A token, or `file:/path` of one. */
  VAULT_TOKEN: string | null;
  VAULT_NAMESPACE: string | null;
}

/** What the operator allows, and where it is read. */
export interface ReferenceRules extends VaultSettings {
  /** Beginnings of references that accounts may use. `{account_id}` stands for the account. */
  SECRET_REFERENCES: readonly string[];
  DATA_DIR: string;
}

type Variable = (name: string) => string | undefined;

/**
 * Whether an account may use a reference. Settings of the service are never allowed, whatever the operator lists: they
 * include its root key.
 * @throws ReferenceError `not_allowed`
 */
export function checkReference(rules: ReferenceRules, account_id: string, reference: string): void {
  const [kind, place] = partsOf(reference);
  const allowed = rules.SECRET_REFERENCES.map((prefix) => prefix.replaceAll('{account_id}', account_id));
  const isPlain = kind === 'file' ? normalize(place) === place : !/(^|\/)\.{0,2}(\/|$)/.test(place.split('#')[0]!);
  const isListed = allowed.some((prefix) => reference.startsWith(prefix));
  if (isListed && isPlain && !(kind === 'env' && place in rules)) return;
  throw new ReferenceError(
    'not_allowed',
    `${reference} is not among the references that this installation allows. Ask an operator to add it to SECRET_REFERENCES`,
  );
}

/** The secret at a reference of an account, which `checkReference` has to allow. @throws ReferenceError */
export async function readReference(
  rules: ReferenceRules,
  reference: string,
  from: { account_id: string; variable: Variable },
): Promise<string> {
  checkReference(rules, from.account_id, reference);
  if (reference.startsWith('file:')) refuseOtherFolders(rules, reference, from.account_id);
  return readOwnReference(rules, reference, from.variable);
}

/** The secret at a reference of the operator, who may name any place. @throws ReferenceError */
export async function readOwnReference(vault: VaultSettings, reference: string, variable: Variable): Promise<string> {
  const [kind, place] = partsOf(reference);
  if (kind === 'vault') return readVault(vault, place);
  const secret = readLocalReference(reference, variable);
  if (secret !== null) return secret;
  throw new ReferenceError('not_found', `${reference} holds nothing on this machine. Set it where the service runs`);
}

/** Where reading a reference sends the token of Vault. Null: nowhere. */
export const vaultHostOf = ({ VAULT_ADDR }: VaultSettings, reference: string): string | null =>
  reference.startsWith('vault:') && VAULT_ADDR !== null ? new URL(VAULT_ADDR).host : null;

/** A link must not lead out of the folder, nor a folder of links into the data of this service. */
function refuseOtherFolders(rules: ReferenceRules, reference: string, account_id: string): void {
  let real: string;
  try {
    real = realpathSync(partsOf(reference)[1]);
    if (!statSync(real).isFile()) throw new Error('no file');
  } catch {
    throw new ReferenceError(
      'not_found',
      `${reference} is not a file on this machine. Create it where the worker runs`,
    );
  }
  const folders = rules.SECRET_REFERENCES.filter((prefix) => prefix.startsWith('file:')).flatMap((prefix) => {
    const folder = prefix.slice('file:'.length).replaceAll('{account_id}', account_id);
    try {
      return [`${realpathSync(dirname(`${folder}x`))}/`];
    } catch {
      return [];
    }
  });
  const isInside = folders.some((folder) => real.startsWith(folder));
  if (isInside && !real.startsWith(`${realpathSync(rules.DATA_DIR)}/`)) return;
  throw new ReferenceError('not_allowed', `${reference} leads to a folder that this installation does not allow`);
}

/** `env:NAME` or `file:/path`. Null: there is nothing. */
function readLocalReference(reference: string, variable: Variable): string | null {
  const [kind, place] = partsOf(reference);
  if (kind === 'env') return variable(place) || null;
  try {
    if (statSync(place).size > MAX_BYTES) return null;
    // Editors and `echo` end a file with a line break.
    return readFileSync(place, 'utf8').replace(/\r?\n$/, '') || null;
  } catch {
    return null;
  }
}

function partsOf(reference: string): [kind: string, place: string] {
  const colon = reference.indexOf(':');
  return [reference.slice(0, colon), reference.slice(colon + 1)];
}

/** Version 2 of the key-value engine of HashiCorp Vault, and of servers with its protocol. */
async function readVault(vault: VaultSettings, place: string): Promise<string> {
  const [path = '', field = ''] = place.split('#');
  const body = (await answerOf(vault, path)) as { data?: { data?: Record<string, unknown> | null } } | null;
  const fields = body?.data?.data ?? {};
  const value = Object.hasOwn(fields, field) ? fields[field] : undefined;
  if (typeof value === 'string' && value !== '') return value;
  throw new ReferenceError(
    'not_found',
    `vault:${path} has no text in the field ${field}. The path of version 2 contains /data/`,
  );
}

function tokenOf(vault: VaultSettings, path: string): string {
  const { VAULT_TOKEN: token } = vault;
  if (vault.VAULT_ADDR === null || token === null) {
    throw new ReferenceError('not_found', `vault:${path} cannot be read without VAULT_ADDR and VAULT_TOKEN`);
  }
  if (!token.startsWith('file:')) return token;
  const read = readLocalReference(token, () => undefined);
  if (read !== null) return read;
  throw new ReferenceError('not_found', `vault:${path} cannot be read: VAULT_TOKEN is ${token}, which holds no token`);
}

async function answerOf(vault: VaultSettings, path: string): Promise<unknown> {
  const { VAULT_ADDR, VAULT_NAMESPACE } = vault;
  const token = tokenOf(vault, path);
  const url = `${VAULT_ADDR!.replace(/\/+$/, '')}/v1/${path.split('/').map(encodeURIComponent).join('/')}`;
  const headers = { 'x-vault-token': token, ...(VAULT_NAMESPACE !== null && { 'x-vault-namespace': VAULT_NAMESPACE }) };
  // The operator names the address, which may be private and without TLS.
  const send = guardedFetch({ allow: [], internal: true, http: true });
  const unreachable = (cause: string) => new ReferenceError('unreachable', `vault:${path} could not be read: ${cause}`);
  let response: Response;
  let body: unknown;
  try {
    response = await send(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
    body = await response.json().catch(() => null);
  } catch (error) {
    throw unreachable((error as Error).message);
  }
  if (response.ok) return body;
  if (response.status === 404) throw new ReferenceError('not_found', `vault:${path} does not exist`);
  if (response.status !== 403 && response.status !== 400) throw unreachable(`status ${response.status}`);
  // Vault tells these apart for nobody: a path that its token may not read need not exist.
  throw new ReferenceError(
    'refused',
    `Vault refuses vault:${path} with status ${response.status}. Check VAULT_TOKEN, its policy, VAULT_NAMESPACE, and that the path of version 2 contains /data/`,
  );
}
