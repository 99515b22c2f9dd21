import {
  type Batch,
  type Cell,
  type ConnectorContext,
  defineSource,
  type Field,
  type Inbox,
  type LogicalType,
  type ReadRequest,
  type StoredEvent,
  type StreamSchema,
} from '../contract/connector.ts';
import { ConfigurationError, SchemaChangedError } from '../contract/errors.ts';
import { positionIn } from '../contract/inbox.ts';
import { acceptEvent } from './events.ts';
import { limitsOf, MAX_BODY_BYTES, WebhookConfig } from './settings.ts';
import { standardKey } from './signatures.ts';

type Context = ConnectorContext<WebhookConfig>;

const ALL = 'events';
const BY_TYPE = 'events_';

export const webhookSource = defineSource<WebhookConfig>({
  type: 'source',
  name: 'webhook',
  display_name: 'Webhooks',
  description: 'Events that other services send to an address of this service, stored before they are acknowledged',
  category: 'http',
  version: '1.0.0',
  release_stage: 'beta',
  auth_methods: ['none'],
  offline: true,
  // Events are deleted once they are read, so a full refresh would replace a table by what happens to be left.
  supported_sync_modes: ['incremental'],
  pushdown: { masking: [], filters: false },
  config: WebhookConfig,
  receiver: {
    limits: limitsOf,
    max_body_bytes: MAX_BODY_BYTES,
    accept: acceptEvent,
    streams: { all: ALL, by_type: BY_TYPE },
  },
  async check(ctx) {
    refuseUnusableSecrets(ctx.config);
    const { stored_events, types } = await inboxOf(ctx).standing();
    const received = `${stored_events} events are stored, of ${types.length} types`;
    return {
      checks: [
        { title: 'Settings', status: 'passed', message: null },
        { title: 'Events', status: 'passed', message: received },
      ],
    };
  },
  async discover(ctx) {
    if (!ctx.config.streams_by_type) return [streamOf(ALL, null)];
    const { types } = await inboxOf(ctx).standing();
    return [streamOf(ALL, null), ...types.map((type) => streamOf(`${BY_TYPE}${type}`, type))];
  },
  read,
});

function inboxOf({ inbox }: Context): Inbox {
  if (inbox) return inbox;
  throw new Error('the context has no inbox');
}

function refuseUnusableSecrets({ signature, secret, previous_secret }: WebhookConfig): void {
  if (signature !== 'standard_webhooks') return;
  for (const one of [secret, previous_secret]) {
    if (one === undefined || standardKey(one)) continue;
    const message = 'A signing secret of Standard Webhooks is whsec_ followed by base64. Copy it again from the sender';
    throw new ConfigurationError('invalid_signing_secret', message);
  }
}

/** The columns of every stream and how an event fills them. */
const COLUMNS: Record<string, { type: LogicalType; nullable?: true; cell: (event: StoredEvent) => Cell }> = {
  id: { type: 'string', cell: ({ id }) => id },
  position: { type: 'integer', cell: ({ position }) => position },
  received_at: { type: 'timestamp_tz', cell: ({ received_at }) => received_at },
  type: { type: 'string', nullable: true, cell: ({ type }) => type },
  headers: { type: 'json', cell: ({ headers }) => headers },
  body: { type: 'json', cell: ({ body }) => body },
};

const streamOf = (name: string, type: string | null): StreamSchema => ({
  namespace: null,
  name,
  description: type === null ? 'All events that the source has received' : `Events of the type ${type}`,
  fields: Object.entries(COLUMNS).map(
    ([column, { type: cellType, nullable }]): Field => ({
      path: [column],
      type: cellType,
      source_type: null,
      dialect: null,
      nullable: nullable ?? false,
      is_primary_key: column === 'id',
      is_cursor_candidate: column === 'position',
    }),
  ),
  supported_sync_modes: ['incremental'],
  source_defined_cursor: true,
  default_cursor_field: ['position'],
  source_defined_primary_key: [['id']],
  is_resumable: true,
  supports_date_window: false,
  suggested: type === null,
});

/** Reads up to the newest event of this moment, so that a run ends while senders go on. */
async function* read(ctx: Context, request: ReadRequest): AsyncGenerator<Batch> {
  const inbox = inboxOf(ctx);
  const { name } = request.stream;
  const type = name === ALL ? undefined : name.slice(BY_TYPE.length);
  const cells = request.columns.map(({ field }) => cellOf(name, field.path));
  const { last_position, released_position } = await inbox.standing();
  let after = positionIn(request.state);
  warnOfReleased(ctx, { after, released_position, isWhole: type === undefined || request.state === null });
  for (;;) {
    ctx.signal.throwIfAborted();
    const events = await inbox.read({ after, up_to: last_position, ...(type !== undefined && { type }) });
    const last = events.at(-1);
    // Without an event of its type a stream moves on, too: the service keeps what it has not read.
    if (!last) {
      if (BigInt(last_position) > BigInt(after)) yield { rows: [], bytes: 0, state: { cursor: last_position } };
      return;
    }
    after = last.position;
    const bytes = events.reduce((sum, event) => sum + event.bytes, 0);
    yield { rows: events.map((event) => cells.map((cell) => cell(event))), bytes, state: { cursor: after } };
  }
}

function warnOfReleased(
  ctx: Context,
  { after, released_position, isWhole }: { after: string; released_position: string; isWhole: boolean },
): void {
  if (!isWhole || BigInt(after) >= BigInt(released_position)) return;
  ctx.warn(
    'events_released',
    'Earlier events were deleted after other connections or runs had loaded them and their retention was over. This read starts with the events that are left',
  );
}

function cellOf(stream: string, path: readonly string[]) {
  const name = path.length === 1 ? path[0]! : '';
  if (Object.hasOwn(COLUMNS, name)) return COLUMNS[name]!.cell;
  throw new SchemaChangedError('column_missing', `${stream} has no column "${path.join('.')}"`);
}
