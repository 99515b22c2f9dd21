import type { ApiClient } from '../../api.ts';
import type { Body, Kind } from '../../pipeline-file/keys.ts';
import { type Current, findNamed } from './current.ts';
import { SECRET_KEYS } from './difference.ts';
import type { Wanted } from './document.ts';

interface Applied {
  file: string;
  prune: boolean;
  wanted: Wanted[];
  current: Current;
  /** False: only files that the service compares already. */
  watch: boolean;
}

const WATCHED = {
  sources: 'source',
  destinations: 'destination',
  connections: 'connection',
  triggers: 'trigger',
} as const;
const isWatched = (kind: Kind): kind is keyof typeof WATCHED => kind in WATCHED;

/** Lets the service compare the account with what was applied. @returns how many items it compares */
export async function watchApplied(api: ApiClient, { file, prune, wanted, current, watch }: Applied): Promise<number> {
  const known = await api.automation.listAppliedFiles.query({});
  const isKnown = (owner: string | null) => known.some((one) => one.file === file && one.owner === owner);
  let count = 0;
  for (const owner of new Set(wanted.map((one) => one.owner))) {
    if (!watch && !isKnown(owner)) continue;
    const own = wanted.filter((one) => one.owner === owner);
    const items = own.flatMap(({ kind, name, body }) =>
      isWatched(kind)
        ? [{ kind: WATCHED[kind], id: findNamed(current, kind, name)!.id, name, settings: settingsOf(body) }]
        : [],
    );
    if (items.length === 0) continue;
    await api.automation.recordAppliedFile.mutate({ file, owner, prune, items });
    count += items.length;
  }
  return count;
}

/** The settings that the file names, with null for each value: the service knows the values, and secrets stay here. */
function settingsOf({ schedule, streams, ...body }: Body): Body {
  return {
    ...shapeOf(body)!,
    // Replaced as a whole.
    ...(schedule !== undefined && { schedule: null }),
    ...(Array.isArray(streams) && { streams: Object.fromEntries((streams as Body[]).map(streamOf)) }),
  };
}

function streamOf({ namespace, name, ...settings }: Body): [string, Body | null] {
  return [`${typeof namespace === 'string' ? namespace : ''}.${String(name)}`, shapeOf(settings)];
}

function shapeOf(value: unknown): Body | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const named = Object.entries(value).filter(([key]) => !SECRET_KEYS.includes(key));
  return Object.fromEntries(named.map(([key, inner]) => [key, shapeOf(inner)]));
}
