import type { Cell, Field, LogicalType, StreamSchema } from '../contract/connector.ts';
import { dateText, timestampText } from '../cells/timestamp-text.ts';
import { below, draw, pick, uuid } from './random.ts';

/** The input of a cell. */
export interface DemoRow {
  /** Position of the row, counted from 0. */
  index: number;
  seed: number;
  /** Time of the last change in microseconds since 1970. */
  micros: number;
  /** Number of rows in the stream `users`. */
  users: number;
}

interface DemoColumn {
  type: LogicalType;
  nullable?: boolean;
  cell(row: DemoRow): Cell;
}

export interface DemoStream {
  name: string;
  description: string;
  /** Makes the random numbers of the streams differ. */
  salt: number;
  /** Number of rows as a share of the setting `rows`. */
  share: number;
  cursor: string;
  columns: Record<string, DemoColumn>;
}

const FIRST = [
  'Ada',
  'Alan',
  'Amélie',
  'Bjørn',
  'Chloë',
  'Fatima',
  'Grace',
  'Hiro',
  'Inés',
  'João',
  'Kofi',
  'Li',
  'Mei',
  'Noor',
  'Olga',
  'Zoë',
];
const LAST = [
  'Adeyemi',
  'Brown',
  'Costa',
  'Dubois',
  "O'Brien",
  'Garcia',
  'Hansen',
  'Ito',
  'Kowalski',
  'Müller',
  'Nguyen',
  'Rossi',
  'Silva',
  'Wang',
];
const COUNTRIES = ['BR', 'CN', 'DE', 'ES', 'FR', 'GB', 'IN', 'JP', 'NG', 'PL', 'US', 'VN'];
const STATUSES = ['pending', 'paid', 'paid', 'paid', 'shipped', 'shipped', 'delivered', 'cancelled', 'refunded'];
const CURRENCIES = ['EUR', 'EUR', 'USD', 'USD', 'GBP', 'JPY'];
const NOTES = ['gift wrap', 'leave at the door', 'ring twice', 'fragile ☕', 'Grüße, "danke"'];
const EVENTS = [
  'page_view',
  'page_view',
  'page_view',
  'click',
  'click',
  'search',
  'sign_in',
  'add_to_cart',
  'checkout',
];
const PATHS = ['/', '/pricing', '/products', '/products/42', '/cart', '/account', '/search?q=caf%C3%A9'];
const DEVICES = ['desktop', 'mobile', 'tablet'];
const HOUR = 3_600_000_000;

const id: DemoColumn = { type: 'integer', cell: ({ index }) => String(index + 1) };
const userId: DemoColumn = { type: 'integer', cell: ({ seed, users }) => String(1 + below(seed, 0, users)) };
const changedAt: DemoColumn = { type: 'timestamp_tz', cell: ({ micros }) => timestampText(micros) };
/** Up to 30 days before the last change. */
const createdAt: DemoColumn = {
  type: 'timestamp_tz',
  cell: ({ seed, micros }) => timestampText(micros - below(seed, 20, 720) * HOUR),
};
const cents = (amount: number) => `${(amount / 100) | 0}.${String(amount % 100).padStart(2, '0')}`;

const users: DemoStream = {
  name: 'users',
  description: 'People with an account. Has a tenth of the configured rows',
  salt: 0x75736572,
  share: 0.1,
  cursor: 'updated_at',
  columns: {
    id,
    public_id: { type: 'string', cell: ({ seed }) => uuid(seed, 1) },
    name: { type: 'string', cell: ({ seed }) => `${pick(seed, 5, FIRST)} ${pick(seed, 6, LAST)}` },
    email: { type: 'string', cell: ({ index }) => `user${index + 1}@example.com` },
    country: { type: 'string', cell: ({ seed }) => pick(seed, 7, COUNTRIES) },
    is_active: { type: 'boolean', cell: ({ seed }) => (below(seed, 8, 10) > 0 ? 'true' : 'false') },
    birth_date: {
      type: 'date',
      nullable: true,
      cell: ({ seed }) => (below(seed, 9, 5) === 0 ? null : dateText(-3650 + below(seed, 10, 16_000))),
    },
    settings: {
      type: 'json',
      cell: ({ seed }) =>
        `{"theme": "${below(seed, 11, 2) ? 'dark' : 'light'}", "newsletter": ${below(seed, 12, 2) === 1}}`,
    },
    created_at: createdAt,
    updated_at: changedAt,
  },
};

const orders: DemoStream = {
  name: 'orders',
  description: 'Orders of the users. Has half of the configured rows',
  salt: 0x6f726472,
  share: 0.5,
  cursor: 'updated_at',
  columns: {
    id,
    user_id: userId,
    order_number: { type: 'string', cell: ({ index }) => `A-${String(index + 1).padStart(9, '0')}` },
    status: { type: 'string', cell: ({ seed }) => pick(seed, 1, STATUSES) },
    amount: { type: 'number', cell: ({ seed }) => cents(99 + below(seed, 2, 500_000)) },
    currency: { type: 'string', cell: ({ seed }) => pick(seed, 3, CURRENCIES) },
    items: {
      type: 'array',
      cell: ({ seed }) => `["sku-${below(seed, 4, 900)}", "sku-${below(seed, 5, 900)}"]`,
    },
    note: { type: 'string', nullable: true, cell: ({ seed }) => (below(seed, 6, 4) ? null : pick(seed, 7, NOTES)) },
    created_at: createdAt,
    updated_at: changedAt,
  },
};

const events: DemoStream = {
  name: 'events',
  description: 'Actions of the users. Has as many rows as configured',
  salt: 0x65766e74,
  share: 1,
  cursor: 'created_at',
  columns: {
    id,
    user_id: { ...userId, nullable: true, cell: (row) => (below(row.seed, 1, 8) ? userId.cell(row) : null) },
    session_id: { type: 'string', cell: ({ seed }) => uuid(seed, 2) },
    event_type: { type: 'string', cell: ({ seed }) => pick(seed, 6, EVENTS) },
    path: { type: 'string', cell: ({ seed }) => pick(seed, 7, PATHS) },
    duration_ms: { type: 'integer', cell: ({ seed }) => String(below(seed, 8, 60_000)) },
    payload: {
      type: 'json',
      cell: ({ seed }) => `{"device": "${pick(seed, 9, DEVICES)}", "score": ${draw(seed, 10) / 1000}}`,
    },
    created_at: changedAt,
  },
};

export const DEMO_STREAMS: readonly DemoStream[] = [users, orders, events];

export const demoFields = (stream: DemoStream): Field[] =>
  Object.entries(stream.columns).map(([name, { type, nullable }]) => ({
    path: [name],
    type,
    source_type: null,
    dialect: null,
    nullable: nullable === true,
    is_primary_key: name === 'id',
    is_cursor_candidate: name === stream.cursor,
  }));

export const demoSchema = (stream: DemoStream): StreamSchema => ({
  namespace: null,
  name: stream.name,
  description: stream.description,
  fields: demoFields(stream),
  supported_sync_modes: ['full_refresh', 'incremental'],
  source_defined_cursor: true,
  default_cursor_field: [stream.cursor],
  source_defined_primary_key: [['id']],
  is_resumable: true,
  supports_date_window: true,
  suggested: true,
});
