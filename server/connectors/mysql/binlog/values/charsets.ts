import { ConfigurationError } from '../../../contract/errors.ts';
import { onSession } from '../../../kits/sql/session.ts';
import { decodeText } from '../../connection/decode-text.ts';
import type { MysqlSession } from '../../connection/session.ts';

export type TextDecoderOf = (bytes: Buffer) => string;

const BINARY = 63;
export const utf8: TextDecoderOf = (bytes) => decodeText(bytes);

/** Character sets of more than one byte that are decoded here. Those of one byte are asked for. */
const WIDE: Record<string, TextDecoderOf> = {
  utf8mb3: utf8,
  utf8mb4: utf8,
  utf8: utf8,
  ucs2: (bytes) => Buffer.from(bytes).swap16().toString('utf16le'),
  utf16: (bytes) => Buffer.from(bytes).swap16().toString('utf16le'),
  utf16le: (bytes) => bytes.toString('utf16le'),
  utf32: (bytes) => {
    let text = '';
    for (let at = 0; at < bytes.length; at += 4) text += String.fromCodePoint(bytes.readUInt32BE(at));
    return text;
  },
};

interface Charset {
  name: string;
  is_single: boolean;
}

/** How texts of each collation are decoded. */
export class Charsets {
  readonly #decoders = new Map<number, TextDecoderOf>();

  private constructor(private readonly charsets: ReadonlyMap<number, Charset>) {}

  static async load(session: MysqlSession): Promise<Charsets> {
    // Since 10.10 the list of collations has no ids of those that several character sets share.
    const list = session.version.number >= 1010 ? 'collation_character_set_applicability' : 'collations';
    const { rows } = await session.query(
      `select a.id, c.character_set_name, c.maxlen = 1 from information_schema.${list} a
         join information_schema.character_sets c on c.character_set_name = a.character_set_name
        where a.id is not null`,
    );
    return new Charsets(
      new Map(rows.map(([id, name, single]) => [Number(id), { name: name!, is_single: single === '1' }])),
    );
  }

  /** Call it before `decoderOf` for these collations. The server itself translates character sets of one byte. */
  async prepare(open: () => Promise<MysqlSession>, collations: Iterable<number | null>): Promise<void> {
    const missing = [...new Set(collations)].filter((id) => id !== null && id !== BINARY && !this.#decoders.has(id));
    const single = new Map<number, string>();
    for (const id of missing as number[]) {
      const charset = this.charsets.get(id);
      const wide = charset && WIDE[charset.name];
      if (wide) this.#decoders.set(id, wide);
      else if (charset?.is_single) single.set(id, charset.name);
    }
    if (single.size === 0) return;
    await onSession(open(), async (session) => {
      for (const [id, name] of single) this.#decoders.set(id, decoderBy(await charactersOf(session, name)));
    });
  }

  /** Null: bytes. @throws ConfigurationError `charset_unsupported` */
  decoderOf(collation: number | null, column: string): TextDecoderOf | null {
    if (collation === null || collation === BINARY) return null;
    const found = this.#decoders.get(collation);
    if (found) return found;
    const name = this.charsets.get(collation)?.name ?? `of the collation ${collation}`;
    throw new ConfigurationError(
      'charset_unsupported',
      `The character set ${name} of ${column} cannot be read from the log. Convert the table to utf8mb4, or read it by a cursor`,
    );
  }
}

const decoderBy =
  (characters: readonly string[]): TextDecoderOf =>
  (bytes) => {
    let text = '';
    for (const byte of bytes) text += characters[byte]!;
    return text;
  };

/** The character of each byte. */
async function charactersOf(session: MysqlSession, charset: string): Promise<string[]> {
  const all = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
  const { rows } = await session.query(
    `select ${all.map((byte) => `convert(_${charset} x'${byte}' using utf8mb4)`).join(', ')}`,
  );
  return rows[0]!.map((character) => character ?? '\ufffd');
}
