import { bare, type Json, mayBe, type OpenApiDocument, selectorOf } from './document.ts';
import type { ListOperation, Parameter } from './operations.ts';

const words = (text: string) => new Set(text.split(' '));
const CURSOR = words(
  'cursor pagecursor pagetoken nexttoken nextpagetoken continuationtoken continuation startcursor after startingafter marker scrollid bookmark nextcursor pageafter',
);
const TOKEN = words(
  'nextcursor nextpagetoken nexttoken nextpagecursor continuationtoken nextcontinuationtoken endcursor cursor nextmarker after bookmark scrollid next',
);
const ADDRESS = words('next nexturl nextpageurl nextlink nextpagelink odatanextlink nextpage');
const PAGE = words('page pagenumber pageno pagenum pageindex currentpage p');
const OFFSET = words('offset skip start startat startindex pageoffset');
const SIZE = words(
  'perpage pagesize limit size maxresults count top take first pagelimit resultsperpage itemsperpage maxpagesize maxitems',
);
const MORE = words('hasmore hasnext hasnextpage more');

const MAX_SIZE = 1000;
const MAX_DEPTH = 3;
const MAX_FIELDS = 100;

export interface GuessedPagination {
  pagination: Json;
  query: Record<string, string>;
  /** What it follows from, as a sentence. */
  because: string;
}

/** How the pages of an operation follow each other, by the names of its parameters and of the fields around its records. */
export function guessPagination(
  document: OpenApiDocument,
  operation: ListOperation,
  key: string | undefined,
): GuessedPagination | null {
  const query = operation.parameters.filter((one) => one.in === 'query');
  const named = (names: ReadonlySet<string>, ...types: string[]) =>
    query.find(({ name, schema }) => names.has(bare(name)) && mayBe(schema, ...types));
  const size = named(SIZE, 'integer', 'number');
  const around = fieldsAround(document, operation.response);
  const field = (names: ReadonlySet<string>, ...types: string[]) =>
    around.find(({ path, schema }) => names.has(bare(path.at(-1)!)) && mayBe(schema, ...types))?.path;
  const build = (kind: Json, carrier: [Parameter, string] | null, because: string): GuessedPagination =>
    sized({ kind, carrier, because, size });

  const cursor = named(CURSOR, 'string', 'integer');
  const more = field(MORE, 'boolean');
  const ending = more && { has_more: selectorOf(more) };
  const token = field(TOKEN, 'string', 'integer');
  if (cursor && token) {
    const kind = { type: 'cursor', token: selectorOf(token), ...ending };
    return build(kind, [cursor, 'page.token'], `the parameter ${cursor.name} and the field ${token.join('.')}`);
  }
  const address = field(ADDRESS, 'string') ?? linkedAddress(around);
  if (address) {
    return build({ type: 'next_address', address: selectorOf(address) }, null, `the field ${address.join('.')}`);
  }
  if (operation.has_link_header) return build({ type: 'link_header' }, null, 'the header Link');
  if (cursor && key !== undefined && bare(cursor.name).endsWith('after')) {
    const list = operation.records.length === 0 ? '' : selectorOf(operation.records);
    const kind = { type: 'cursor', token: `${list}[-1].${selectorOf([key])}`, ...ending };
    return build(kind, [cursor, 'page.token'], `the parameter ${cursor.name} and the last ${key}`);
  }
  const page = named(PAGE, 'integer', 'number');
  if (page) {
    const isFromZero = page.schema.minimum === 0 || page.schema.default === 0;
    const kind = { type: 'page_number', ...(isFromZero && { start: 0 }) };
    return build(kind, [page, 'page.number'], `the parameter ${page.name}`);
  }
  const offset = named(OFFSET, 'integer', 'number');
  return offset ? build({ type: 'offset' }, [offset, 'page.offset'], `the parameter ${offset.name}`) : null;
}

function sized(guess: {
  kind: Json;
  carrier: [Parameter, string] | null;
  because: string;
  size: Parameter | undefined;
}): GuessedPagination {
  const { kind, carrier, because, size } = guess;
  const { maximum, default: fallback } = size?.schema ?? {};
  const wanted = [maximum, fallback].find((one): one is number => Number.isInteger(one) && Number(one) >= 1);
  const query = carrier ? { [carrier[0].name]: `{{ ${carrier[1]} }}` } : {};
  if (!size || wanted === undefined) return { pagination: kind, query, because };
  return {
    pagination: { ...kind, size: Math.min(wanted, MAX_SIZE) },
    query: { ...query, [size.name]: '{{ page.size }}' },
    because: `${because}, ${Math.min(wanted, MAX_SIZE)} records a page by ${size.name}`,
  };
}

interface Field {
  path: string[];
  schema: Json;
}

/** The fields of a response that are not in a list, the outer ones first. */
function fieldsAround(document: OpenApiDocument, response: Json): Field[] {
  const found: Field[] = [];
  let level: Field[] = [{ path: [], schema: response }];
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    level = level
      .filter(({ schema }) => schema.items === undefined)
      .flatMap(({ path, schema }) =>
        document.properties(schema).map(([name, inner]) => ({ path: [...path, name], schema: inner })),
      )
      .slice(0, MAX_FIELDS);
    found.push(...level);
  }
  return found;
}

/** `links.next.href` */
const linkedAddress = (around: Field[]): string[] | undefined =>
  around.find(({ path }) => bare(path.at(-2) ?? '') === 'next' && ['href', 'url'].includes(bare(path.at(-1)!)))?.path;
