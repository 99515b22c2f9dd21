import { type Current, findNamed } from './current.ts';
import type { Wanted } from './document.ts';
import type { Body } from '../../pipeline-file/keys.ts';

/** The request body of a connection without its references. A schedule is replaced as a whole. */
export function connectionRequest(body: Body): Body & { streams?: Body[] } {
  const { source: _source, destination: _destination, schedule, streams, ...rest } = body;
  const defaults = { interval_minutes: null, cron_expression: null, timezone: 'UTC', time_of_day: null };
  return {
    ...rest,
    ...(schedule !== undefined && { schedule: { ...defaults, ...(schedule as Body) } }),
    ...(Array.isArray(streams) && { streams: streams.map((stream) => ({ selected: true, ...(stream as Body) })) }),
  };
}

/** The request body of a trigger, with ids for names. Items that do not exist yet have no id. */
export function triggerRequest(body: Body, current: Current): Body {
  if (!Array.isArray(body.actions)) return { ...body, actions: [] };
  const actions = (body.actions as Body[]).map(({ connection, account_connector, ...action }) => ({
    ...action,
    ...(connection !== undefined && { connection_id: findNamed(current, 'connections', connection)?.id }),
    ...(account_connector !== undefined && {
      account_connector_id:
        (findNamed(current, 'destinations', account_connector) ?? findNamed(current, 'sources', account_connector))
          ?.id ?? 'new',
    }),
  }));
  return { ...body, actions };
}

/** A role or a user as in the file; the order of a set means nothing. */
export const personBody = ({ body }: Wanted): Body => ({
  ...body,
  ...(Array.isArray(body.roles) && { roles: body.roles.map(String).toSorted() }),
});

/** The request for a user, with ids for the names of roles. */
export const userRequest = ({ body: { roles, ...body } }: Wanted, current: Current): Body => ({
  ...body,
  ...(Array.isArray(roles) && {
    role_ids: roles.map((name) => (findNamed(current, 'roles', name) ?? findNamed(current, 'known_roles', name))?.id),
  }),
});

/** The request that creates a source or destination. */
export const connectorRequest = ({ kind, name, body: { connector, ...body } }: Wanted): Body => ({
  ...body,
  name,
  connector_type: kind === 'sources' ? 'source' : 'destination',
  connector_name: connector,
});
