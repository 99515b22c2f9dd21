import { join } from 'node:path';
import { allConnectors } from '../../connectors/registry.ts';

/** The repository: every document is a Markdown file in it. */
export const ROOT = join(import.meta.dir, '../../..');

export type Section = 'Guides' | 'Operations' | 'Connectors' | 'Inside the service' | 'Decisions';

/** A Markdown file and the path under which the service shows it. */
export interface ServedDocument {
  /** Relative to the repository. */
  file: string;
  url: string;
  section: Section;
  title: string;
  /** The first paragraph as plain text. */
  summary: string;
  markdown: string;
}

/** In reading order; other guides follow in order of their names. */
const GUIDES = [
  'getting-started',
  'postgresql-to-warehouse',
  'files-and-object-stores',
  'webhooks',
  'reverse-etl',
  'rest-apis-and-airbyte-manifests',
  'change-data-capture',
  'custom-runs',
  'automation',
  'command-line',
  'git-ops',
  'operation',
];

/** Single files, in the order of the index. */
const FILES: [file: string, url: string, section: Section][] = [
  ['README.md', '/docs/readme', 'Guides'],
  ['server/README.md', '/docs/server', 'Inside the service'],
  ['server/docs/glossary.md', '/docs/glossary', 'Inside the service'],
  ['server/docs/states.md', '/docs/states', 'Inside the service'],
  ['server/docs/changelog.md', '/docs/changelog', 'Guides'],
  ['server/connectors/README.md', '/docs/connectors', 'Inside the service'],
  ['server/connectors/kits/sql/README.md', '/docs/kits/sql', 'Inside the service'],
  ['server/connectors/kits/rest/README.md', '/docs/kits/rest', 'Inside the service'],
  ['server/connectors/kits/files/README.md', '/docs/kits/files', 'Inside the service'],
  ['client/console/README.md', '/docs/console', 'Inside the service'],
];

let documents: Promise<ServedDocument[]> | undefined;

/** Every document, read once per process. */
export const servedDocuments = (): Promise<ServedDocument[]> => (documents ??= readAll());

async function readAll(): Promise<ServedDocument[]> {
  const folder = (name: string) => [...new Bun.Glob('*.md').scanSync({ cwd: join(ROOT, name) })].toSorted();
  const place = (file: string) => [...GUIDES, file.replace('.md', '')].indexOf(file.replace('.md', ''));
  const guides = folder('server/docs/guides').toSorted((a, b) => place(a) - place(b));
  const connectors = new Set(allConnectors().flatMap(({ name, hidden }) => (hidden ? [] : [name])));
  const places: [file: string, url: string, section: Section][] = [
    ...FILES.slice(0, 1),
    ...guides.map((file) => pageOf('server/docs/guides', file, 'Guides')),
    ...folder('server/docs/guides/operations').map((file) =>
      pageOf('server/docs/guides/operations', file, 'Operations'),
    ),
    ...[...connectors].toSorted().map(connectorPage),
    ...FILES.slice(1),
    ...folder('server/docs/decisions').map((file) => pageOf('server/docs/decisions', file, 'Decisions')),
  ];
  const read = await Promise.all(places.map(([file, url, section]) => documentAt({ file, url, section })));
  return read.filter((one) => one !== null);
}

const pageOf = (folder: string, file: string, section: Section): [string, string, Section] => [
  `${folder}/${file}`,
  `/docs/${folder.split('/').at(-1)}/${file.replace('.md', '')}`,
  section,
];

const connectorPage = (name: string): [string, string, Section] => [
  `server/connectors/${name.replaceAll('_', '-')}/README.md`,
  `/docs/connectors/${name}`,
  'Connectors',
];

/** Null if the file does not exist: a connector need not have a README. */
async function documentAt(place: Pick<ServedDocument, 'file' | 'url' | 'section'>): Promise<ServedDocument | null> {
  const file = Bun.file(join(ROOT, place.file));
  if (!(await file.exists())) return null;
  const markdown = await file.text();
  const [, heading = place.file] = /^# (.+)$/m.exec(markdown) ?? [];
  const [, paragraph = ''] = /^# .+\n+((?:(?![#|`\-!>]).+\n?)+)/m.exec(markdown) ?? [];
  return {
    ...place,
    title: plain(heading),
    summary: firstSentence(plain(paragraph.replace(/^\*\*\w+\.\*\*/, ''))),
    markdown,
  };
}

/** Markdown without its marks, for one line of an index. */
const plain = (markdown: string): string =>
  markdown
    .replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*]/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim();

const firstSentence = (text: string): string => /^.*?[.!?](?=\s|$)/.exec(text)?.[0] ?? text;
