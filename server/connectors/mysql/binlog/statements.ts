/** What a statement in the log does to tables. */
export type StatementEffect =
  | { kind: 'nothing' | 'commit' | 'rollback' | 'unlogged_rows' }
  /** Tables that are emptied (`truncate`), or whose rows are other ones afterwards (`replace`). */
  | { kind: 'truncate' | 'replace'; tables: TableName[] }
  | { kind: 'drop_database'; database: string };

export interface TableName {
  database: string;
  name: string;
}

interface Token {
  text: string;
  /** In capitals; empty: quoted, so not a word of the language. */
  word: string;
}

const NOTHING: StatementEffect = { kind: 'nothing' };

/** Statements that change no rows of a table, or whose rows are in the log. */
const HARMLESS: ReadonlySet<string> = new Set(
  'BEGIN START SAVEPOINT RELEASE GRANT REVOKE SET FLUSH ANALYZE OPTIMIZE REPAIR CHECK INSTALL UNINSTALL'.split(' '),
);

/** The event that stands for an annotation, which readers do not ask for. */
const DUMMY = '# Dummy event replacing event type 160';

/** The first statement of a transaction of MySQL that has more than one event. */
export const opensTransaction = (statement: string): boolean =>
  statement === 'BEGIN' || /^XA START\b|^CREATE TABLE[^]*\bSTART TRANSACTION$/i.test(statement);

export function effectOf(statement: string, database: string): StatementEffect {
  // Most of the statements in a log.
  if (statement === 'COMMIT') return { kind: 'commit' };
  if (statement === 'BEGIN' || statement.startsWith(DUMMY)) return NOTHING;
  const tokens = new Tokens(statement, database);
  const first = tokens.word();
  if (HARMLESS.has(first)) return NOTHING;
  switch (first) {
    case 'COMMIT':
      return { kind: 'commit' };
    case 'XA':
      // What it decides was refused when it was prepared, or is of other tables.
      return tokens.isNext('COMMIT', 'ROLLBACK') ? { kind: 'commit' } : NOTHING;
    case 'ROLLBACK':
      // To a savepoint: the rows since then stay in the log.
      return { kind: tokens.accepts('TO') ? 'unlogged_rows' : 'rollback' };
    case 'TRUNCATE':
      tokens.accepts('TABLE');
      return { kind: 'truncate', tables: [tokens.name()] };
    case 'DROP':
      return dropOf(tokens);
    case 'RENAME':
      return tokens.accepts('TABLE') || tokens.accepts('TABLES') ? renameOf(tokens) : NOTHING;
    case 'ALTER':
      return alterOf(tokens);
    case 'CREATE':
      return createOf(tokens);
    default:
      return { kind: 'unlogged_rows' };
  }
}

function dropOf(tokens: Tokens): StatementEffect {
  if (tokens.accepts('DATABASE') || tokens.accepts('SCHEMA')) {
    tokens.acceptsAll('IF', 'EXISTS');
    return { kind: 'drop_database', database: tokens.next()?.text ?? '' };
  }
  if (!tokens.accepts('TABLE') && !tokens.accepts('TABLES')) return NOTHING;
  tokens.acceptsAll('IF', 'EXISTS');
  const tables = [tokens.name()];
  while (tokens.accepts(',')) tables.push(tokens.name());
  return { kind: 'replace', tables };
}

function renameOf(tokens: Tokens): StatementEffect {
  tokens.acceptsAll('IF', 'EXISTS');
  const tables: TableName[] = [];
  do {
    tables.push(tokens.name());
    tokens.skipTo('TO');
    tables.push(tokens.name());
  } while (tokens.accepts(','));
  return { kind: 'replace', tables };
}

/** Other changes of a table show in the columns of its next rows. */
function alterOf(tokens: Tokens): StatementEffect {
  while (tokens.accepts('ONLINE') || tokens.accepts('OFFLINE') || tokens.accepts('IGNORE'));
  if (!tokens.accepts('TABLE')) return NOTHING;
  tokens.acceptsAll('IF', 'EXISTS');
  const tables = [tokens.name()];
  let replaces = false;
  for (let before = '', token = tokens.next(); token; before = token.word, token = tokens.next()) {
    const { word } = token;
    if (word === 'RENAME' && !tokens.isNext('COLUMN', 'INDEX', 'KEY')) {
      tokens.acceptsAny('TO', 'AS', '=');
      tables.push(tokens.name());
      replaces = true;
    }
    if (word === 'PARTITION' && ['DROP', 'TRUNCATE', 'EXCHANGE', 'CONVERT'].includes(before)) replaces = true;
    if (word === 'TABLESPACE' && ['DISCARD', 'IMPORT'].includes(before)) replaces = true;
    // Partitions trade places with tables, or become one.
    if (word === 'TABLE' && ['WITH', 'TO', 'CONVERT'].includes(before)) {
      tables.push(tokens.name());
      replaces = true;
    }
  }
  return replaces ? { kind: 'replace', tables } : NOTHING;
}

function createOf(tokens: Tokens): StatementEffect {
  if (!tokens.acceptsAll('OR', 'REPLACE') || !tokens.accepts('TABLE')) return NOTHING;
  return { kind: 'replace', tables: [tokens.name()] };
}

const BLANK = /\s/;
const NAME = /[\w$\u0080-\uffff]/;

/** The words, names and signs of a statement, without comments. */
class Tokens {
  readonly #tokens: Token[];
  #at = 0;

  constructor(
    statement: string,
    private readonly database: string,
  ) {
    this.#tokens = [...tokensOf(statement)];
  }

  next(): Token | undefined {
    return this.#tokens[this.#at++];
  }

  word(): string {
    return this.next()?.word ?? '';
  }

  isNext(...words: string[]): boolean {
    return words.includes(this.#tokens[this.#at]?.word ?? '');
  }

  accepts(word: string): boolean {
    if (!this.isNext(word)) return false;
    this.#at++;
    return true;
  }

  acceptsAny(...words: string[]): void {
    if (this.isNext(...words)) this.#at++;
  }

  acceptsAll(...words: string[]): boolean {
    const all = words.every((word, index) => this.#tokens[this.#at + index]?.word === word);
    if (all) this.#at += words.length;
    return all;
  }

  skipTo(word: string): void {
    for (let token = this.next(); token && token.word !== word; token = this.next());
  }

  /** `table` or `database.table`. */
  name(): TableName {
    const first = this.next()?.text ?? '';
    if (!this.accepts('.')) return { database: this.database, name: first };
    return { database: first, name: this.next()?.text ?? '' };
  }
}

function* tokensOf(text: string): Generator<Token> {
  let at = 0;
  while (at < text.length) {
    const character = text[at]!;
    const two = text.slice(at, at + 2);
    if (BLANK.test(character)) at++;
    else if (character === '#' || (two === '--' && (at + 2 >= text.length || BLANK.test(text[at + 2]!)))) {
      at = endOf(text, '\n', at);
    } else if (two === '/*') at = afterComment(text, at);
    else if (two === '*/') at += 2;
    else if (character === '`' || character === '"' || character === "'") {
      const quoted = quotedAt(text, at);
      yield { text: quoted.text, word: '' };
      at = quoted.end;
    } else {
      let end = at + 1;
      if (NAME.test(character)) while (end < text.length && NAME.test(text[end]!)) end++;
      const word = text.slice(at, end);
      yield { text: word, word: word.toUpperCase() };
      at = end;
    }
  }
}

function endOf(text: string, end: string, from: number): number {
  const found = text.indexOf(end, from);
  return found < 0 ? text.length : found + end.length;
}

/** What follows a version (`/*!50100 …`) is executed. */
function afterComment(text: string, at: number): number {
  const start = text.startsWith('/*!', at) ? at + 3 : text.startsWith('/*M!', at) ? at + 4 : null;
  if (start === null) return endOf(text, '*/', at + 2);
  let end = start;
  while (end < text.length && text[end]! >= '0' && text[end]! <= '9') end++;
  return end;
}

function quotedAt(text: string, at: number): { text: string; end: number } {
  const quote = text[at]!;
  let content = '';
  let end = at + 1;
  for (; end < text.length; end++) {
    const character = text[end]!;
    if (character === '\\' && quote !== '`') content += text[++end] ?? '';
    else if (character !== quote) content += character;
    else if (text[end + 1] === quote) content += text[++end]!;
    else break;
  }
  return { text: content, end: end + 1 };
}
