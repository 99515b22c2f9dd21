import { crc32, inflateSync } from 'node:zlib';
import { CannotContinueError, ConnectorError, DataError } from '../../contract/errors.ts';
import { RESET_HINT } from './reset-hint.ts';
import { ByteReader } from './values/byte-reader.ts';
import type { Gtid } from './gtid.ts';

/** What an event of the log says. Events without a meaning for readers are `other`. */
export type LogEvent =
  | { kind: 'begin'; gtid: Gtid; standalone: boolean; seconds: number }
  | { kind: 'table'; id: number; body: ByteReader }
  | { kind: 'rows'; operation: RowOperation; table: number; rows: ByteReader; width: number; complete: boolean }
  | { kind: 'statement'; database: string; text: string }
  | { kind: 'commit' }
  | { kind: 'prepared' }
  | { kind: 'file'; name: string; position: number }
  | { kind: 'other' };

export type RowOperation = 'insert' | 'update' | 'delete';

const HEADER = 19;
const CHECKSUM = 4;
/** CRC-32 of anything that is followed by its CRC-32. */
const INTACT = 0x2144df1c;
const IGNORABLE = 0x80;
const STANDALONE = 1;

const QUERY = 2;
const ROTATE = 4;
const FORMAT = 15;
const XID = 16;
const TABLE_MAP = 19;
const INCIDENT = 26;
const XA_PREPARE = 38;
const MYSQL_GTID = 33;
const MYSQL_ANONYMOUS = 34;
const GTID = 162;
const QUERY_COMPRESSED = 165;

/** By type: 23 to 25 of the first version, 30 to 32 of the second, 166 to 171 compressed ones of both. */
const ROWS: Record<number, { operation: RowOperation; second: boolean; compressed: boolean }> = {};
for (const [at, operation] of (['insert', 'update', 'delete'] as const).entries()) {
  ROWS[23 + at] = { operation, second: false, compressed: false };
  ROWS[30 + at] = { operation, second: true, compressed: false };
  ROWS[166 + at] = { operation, second: false, compressed: true };
  ROWS[169 + at] = { operation, second: true, compressed: true };
}

/**
 * Stop, variables of statements (which are refused themselves), heartbeats, annotations, checkpoints, lists of GTIDs, the
 * start of encryption. Of MySQL: texts of statements, sets of GTIDs, members of a group, another heartbeat.
 */
const WITHOUT_ROWS: ReadonlySet<number> = new Set([3, 5, 13, 14, 27, 29, 35, 36, 37, 41, 160, 161, 163, 164]);

/** Of events that are not read: what a session of MySQL used, whatever the server's own settings are. */
const CAUSES: Readonly<Record<number, string>> = {
  39: 'binlog_row_value_options = PARTIAL_JSON',
  40: 'binlog_transaction_compression = ON',
  42: 'a GTID with a tag',
};

const OTHER: LogEvent = { kind: 'other' };
const COMMIT: LogEvent = { kind: 'commit' };

/** Decodes the events of one connection, whose checksums depend on the file they are from. */
export class EventDecoder {
  /** @param checksums whether events carry one, as the session has announced it */
  constructor(private checksums: boolean) {}

  decode(event: Buffer): LogEvent {
    const type = event[4]!;
    if (type === FORMAT) {
      this.checksums = event[event.length - CHECKSUM - 1] === 1;
      return OTHER;
    }
    // Small transactions leave more garbage than rows: a part of the event is not worth a Buffer of its own.
    if (this.checksums && crc32(event) !== INTACT) {
      throw new DataError(
        'binlog_corrupt',
        'An event of the binary log has a wrong checksum. Check the disk of the server',
      );
    }
    const body = new ByteReader(event, HEADER, event.length - (this.checksums ? CHECKSUM : 0));
    const rows = ROWS[type];
    if (rows) return rowsOf(body, rows);
    switch (type) {
      case TABLE_MAP:
        return { kind: 'table', id: body.uint(6), body };
      case GTID:
        return beginOf(event, body);
      case MYSQL_GTID:
        return beginOfMysql(event, body);
      case XID:
        return COMMIT;
      case XA_PREPARE:
        return body.uint(1) === 1 ? COMMIT : { kind: 'prepared' };
      case QUERY:
      case QUERY_COMPRESSED:
        return statementOf(body, type === QUERY_COMPRESSED);
      case ROTATE:
        return { kind: 'file', position: Number(body.uint64()), name: body.rest().toString('utf8') };
      default:
        return otherOf(type, event.readUInt16LE(17));
    }
  }
}

function otherOf(type: number, flags: number): LogEvent {
  if (type === MYSQL_ANONYMOUS) {
    throw new CannotContinueError(
      'gtid_mode_not_on',
      `The binary log has a transaction without a GTID. Set gtid_mode = ON. ${RESET_HINT}`,
    );
  }
  if (WITHOUT_ROWS.has(type) || (flags & IGNORABLE) !== 0) return OTHER;
  if (type === INCIDENT) {
    throw new CannotContinueError('binlog_incident', `The server lost changes before it logged them. ${RESET_HINT}`);
  }
  throw new ConnectorError(
    'binlog_event_unknown',
    `The binary log has an event of type ${type}${CAUSES[type] ? `, because a session used ${CAUSES[type]}` : ''}. It is not supported, so its changes cannot be read. ${RESET_HINT}`,
  );
}

function beginOf(event: Buffer, body: ByteReader): LogEvent {
  const number = body.uint64();
  const domain = body.uint(4);
  const flags = body.uint(1);
  const gtid = { domain, server: event.readUInt32LE(5), number };
  return { kind: 'begin', gtid, standalone: (flags & STANDALONE) !== 0, seconds: event.readUInt32LE(0) };
}

/** Whether the transaction is one statement is known by the first one. */
function beginOfMysql(event: Buffer, body: ByteReader): LogEvent {
  body.uint(1);
  const hex = body.take(16).toString('hex');
  const domain = hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  const gtid = { domain, server: event.readUInt32LE(5), number: body.uint64() };
  return { kind: 'begin', gtid, standalone: true, seconds: event.readUInt32LE(0) };
}

function rowsOf(body: ByteReader, { operation, second, compressed }: (typeof ROWS)[number]): LogEvent {
  const table = body.uint(6);
  body.skip(2);
  if (second) body.skip(body.uint(2) - 2);
  const width = body.length();
  let complete = hasAll(body, width);
  if (operation === 'update') complete = hasAll(body, width) && complete;
  const rows = compressed ? new ByteReader(inflate(body.rest())) : body;
  return { kind: 'rows', operation, table, rows, width, complete };
}

/** Whether the rows have all columns. */
function hasAll(body: ByteReader, width: number): boolean {
  const { bytes, at: present } = body;
  body.skip((width + 7) >> 3);
  for (let at = 0; at < width; at++) if ((bytes[present + (at >> 3)]! & (1 << (at & 7))) === 0) return false;
  return true;
}

/** A byte with the size of the length, the length, and a stream of zlib. */
function inflate(bytes: Buffer): Buffer {
  const size = bytes[0]! & 0x07;
  if ((bytes[0]! & 0xf0) !== 0x80) throw new DataError('binlog_corrupt', 'A compressed event has an unknown format');
  const plain = inflateSync(bytes.subarray(1 + size));
  if (plain.length === bytes.readUIntBE(1, size)) return plain;
  throw new DataError('binlog_corrupt', 'A compressed event of the binary log does not have its length');
}

function statementOf(body: ByteReader, compressed: boolean): LogEvent {
  body.take(8);
  const database = body.uint(1);
  body.take(2);
  body.take(body.uint(2));
  const name = body.text(database);
  body.take(1);
  const text = body.rest();
  return { kind: 'statement', database: name, text: (compressed ? inflate(text) : text).toString('utf8') };
}
