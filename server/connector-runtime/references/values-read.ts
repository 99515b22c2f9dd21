import { LRUCache } from 'lru-cache';
import type { AccountConnectorRow } from '../../../db/schema/index.ts';
import type { Deps } from '../../deps.ts';

const MAX_ROWS = 1000;
/** A secret that was replaced can still stand in a message about the work before. A private key is noted line by line. */
const MAX_VALUES = 200;
const noted = new WeakMap<Deps, LRUCache<string, readonly string[]>>();

/** Keeps the secrets that were read by the references of a row, for the redaction of logs and messages. */
export function noteValues(deps: Deps, { id }: Pick<AccountConnectorRow, 'id'>, values: string[]): void {
  const all = noted.get(deps) ?? new LRUCache<string, readonly string[]>({ max: MAX_ROWS });
  noted.set(deps, all);
  const before = all.get(id) ?? [];
  const added = values.filter((value) => !before.includes(value));
  if (added.length > 0) all.set(id, [...added, ...before].slice(0, MAX_VALUES));
}

/** The secrets that this process has read by the references of a row; the same list until there are more. */
export const valuesRead = (deps: Deps, { id }: Pick<AccountConnectorRow, 'id'>): readonly string[] =>
  noted.get(deps)?.get(id) ?? NONE;
const NONE: readonly string[] = [];
