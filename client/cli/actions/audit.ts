import type { ApiClient } from '../../api.ts';
import type { Cli } from '../context.ts';
import { CommandError } from '../exit.ts';
import { colouredStatus, moment, number } from '../style.ts';
import { showList, showThing } from '../table.ts';

type Query = Parameters<ApiClient['audit']['list']['query']>[0];

export interface AuditListing {
  json: boolean;
  action?: string;
  resource?: string;
  kind?: string;
  from?: string;
  to?: string;
  limit?: number;
}

export async function listAudit(cli: Cli, flags: AuditListing): Promise<void> {
  const { json, action, resource: resource_id, kind, from, to, limit } = flags;
  const query = { action, resource_id, kind, from, to, limit } as Query;
  showList(cli, await (await cli.api()).audit.list.query(query), {
    json,
    empty: 'No matching entries',
    columns: {
      time: ({ occurred_at }) => moment(occurred_at),
      actor: ({ actor }) => actor.name ?? actor.type,
      kind: (entry) => entry.operation ?? entry.kind,
      action: (entry) => entry.action,
      resource: ({ resource }) => (resource ? `${resource.type} ${resource.name ?? resource.id}` : ''),
      outcome: ({ outcome, code, count }) => `${code ?? outcome}${count > 1 ? ` × ${count}` : ''}`,
    },
    wide: {
      address: ({ address }) => address ?? '',
      request: ({ request_id }) => request_id ?? '',
      id: ({ id }) => id,
    },
  });
}

/** The exit code is the result, so that a schedule can run it. */
export async function verifyAudit(cli: Cli, flags: { json: boolean; anchor?: string }): Promise<void> {
  const anchor = flags.anchor === undefined ? null : anchorIn(flags.anchor);
  const found = await (await cli.api()).audit.verify.mutate({ anchor });
  showThing(cli, found, {
    json: flags.json,
    lines: {
      result: colouredStatus(cli.style, found.is_intact ? 'intact' : 'failed'),
      entries: `${number(found.entries)} in ${number(found.seals)} seals, ${number(found.unsealed)} not sealed yet`,
      anchor: found.head ? `${found.head.seal}:${found.head.hash}` : '–',
      ...(found.problems.length > 0 && {
        problems: found.problems
          .map((one) => `${one.problem}: seal ${one.seal ?? '–'}, entries ${one.first_entry}–${one.last_entry}`)
          .join('\n'),
      }),
    },
  });
  if (!found.is_intact) throw new CommandError('failed', 'The audit log was changed');
}

function anchorIn(text: string) {
  const [, seal, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (!seal || !hash) {
    throw new CommandError('usage', 'An anchor has the form SEAL:HASH, as printed by an earlier verification');
  }
  return { seal: Number(seal), hash };
}
