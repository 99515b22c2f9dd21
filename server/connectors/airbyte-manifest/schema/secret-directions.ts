import type { Manifest } from '../components/parse-manifest.ts';
import type { PythonFiles } from '../components/python-source.ts';
import type { DeclarativeSource } from '../components/source-components.ts';

/** An expression that yields a value of the configuration as it is. */
const CONFIG_VALUE = /\{\{\s*config(?:\.(\w+)|\[\s*['"]([\w-]+)['"]\s*\])(?:\.\w+|\[\s*['"][\w-]+['"]\s*\])*\s*\}\}/g;

/**
 * Hashes of everything that decides where secrets are sent: the bases of all requests with their authenticators, and what
 * can change either. A manifest whose hashes are all among those of another one sends secrets to no other place: a path
 * is always below its base (`buildRequest`), and responses lead to the same origins only.
 */
export function secretDirections(
  { specification, advanced_auth }: Manifest,
  source: DeclarativeSource,
  python: PythonFiles | null,
): string[] {
  const found: unknown[] = [];
  /** Parameters, partitions and responses could name any host. */
  let isOpen = false;
  for (const requester of requestersIn(source)) {
    const { url_base, url, path, authenticator, python: custom } = requester;
    const base = textOf(url_base) || textOf(url);
    // A base without a literal scheme may be empty, and then the path is the whole URL.
    found.push({ base, authenticator, custom, ...(!/^https?:\/\//i.test(base) && { path }) });
    for (const text of [base, ...textsIn(authenticator)]) {
      isOpen ||= /\{[{%]/.test(text.replaceAll(CONFIG_VALUE, ''));
      for (const [, member, key] of text.matchAll(CONFIG_VALUE))
        found.push(defaultsOf(specification, member ?? key ?? ''));
    }
    isOpen ||= base === '';
  }
  if (isOpen) found.push({ source });
  const rules = source.spec?.config_normalization_rules;
  if (rules) found.push({ rules });
  if (source.dynamic_streams.length > 0) found.push({ dynamic: source.dynamic_streams });
  if (advanced_auth) found.push({ advanced_auth });
  if (python) found.push({ python });
  return [...new Set(found.map((one) => new Bun.CryptoHasher('sha256').update(JSON.stringify(one)).digest('hex')))];
}

type Node = Record<string, unknown>;

function* requestersIn(node: unknown): Generator<Node> {
  if (Array.isArray(node)) for (const one of node) yield* requestersIn(one);
  else if (typeof node === 'object' && node !== null) {
    if ((node as Node)['type'] === 'HttpRequester') yield node as Node;
    for (const one of Object.values(node)) yield* requestersIn(one);
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value.trim() : '');

function textsIn(node: unknown): string[] {
  if (typeof node === 'string') return [node];
  return typeof node === 'object' && node !== null ? Object.values(node).flatMap(textsIn) : [];
}

/** The spec fills in its defaults where a source has no value. */
function defaultsOf(specification: Node | null, name: string): unknown {
  const properties = specification?.['properties'] as Record<string, unknown> | undefined;
  const declared = JSON.stringify(properties?.[name] ?? specification ?? {});
  return { name, declared: declared.includes('"default"') ? declared : null };
}
