import { existsSync, globSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { unusedBy } from './unused-files.ts';

const ROOT = join(import.meta.dir, '../..');

/** An installed package that the service needs at run time. */
export interface ThirdParty {
  name: string;
  version: string;
  /** An SPDX expression. */
  license: string;
  folder: string;
}

interface PackageFile {
  name: string;
  version: string;
  license?: string | { type?: string };
  licenses?: { type?: string }[];
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
}

const readPackage = (folder: string): PackageFile =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageFile;

const service = readPackage(ROOT);

/** The packages of the service and what they need, by name. Packages for other platforms are not installed. */
export function thirdParties(): ThirdParty[] {
  const found = new Map<string, ThirdParty>();
  const visit = (name: string, from: string): void => {
    const folder = installed(name, from);
    if (folder === null || unusedBy(`${name}/package.json`) !== null) return;
    const own = readPackage(folder);
    const key = `${own.name}@${own.version}`;
    if (found.has(key)) return;
    found.set(key, { name: own.name, version: own.version, license: licenseOf(own, folder), folder });
    for (const needed of Object.keys({ ...own.peerDependencies, ...own.dependencies, ...own.optionalDependencies }))
      visit(needed, folder);
  };
  const { dependencies, optionalDependencies } = service;
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) visit(name, ROOT);
  return [...found.values()].toSorted((a, b) => (a.name + a.version < b.name + b.version ? -1 : 1));
}

/** The folder of a package as a module in `from` finds it. */
function installed(name: string, from: string): string | null {
  for (let folder = from; ; folder = dirname(folder)) {
    const wanted = join(folder, 'node_modules', name);
    if (existsSync(join(wanted, 'package.json'))) return wanted;
    if (folder === ROOT || folder === dirname(folder)) return null;
  }
}

const TEXTS: [text: RegExp, license: string][] = [
  [/Apache License/, 'Apache-2.0'],
  [/Permission is hereby granted, free of charge/, 'MIT'],
  [/Permission to use, copy, modify, and\/or distribute/, 'ISC'],
  [/Redistribution and use in source and binary forms/, 'BSD-3-Clause'],
];

/** By the package's description, else by the text of its license. */
function licenseOf({ license, licenses }: PackageFile, folder: string): string {
  const named = typeof license === 'string' ? license : (license?.type ?? licenses?.[0]?.type);
  if (named) return named;
  const text = licenseTexts(folder)[0] ?? '';
  return TEXTS.find(([pattern]) => pattern.test(text))?.[1] ?? 'NOASSERTION';
}

const licenseTexts = (folder: string): string[] =>
  globSync('{LICEN[SC]E,Licen[sc]e,licen[sc]e,NOTICE,COPYING}*', { cwd: folder })
    .toSorted()
    .filter((name) => !/\.(js|ts|json)$/.test(name))
    .map((name) => readFileSync(join(folder, name), 'utf8'));

/** The software bill of materials, as CycloneDX 1.6. */
export const billOfMaterials = (parties: ThirdParty[]) => ({
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  version: 1,
  metadata: {
    component: {
      type: 'application',
      'bom-ref': 'data-pipelines',
      name: service.name,
      version: service.version,
      licenses: [{ license: { id: service.license } }],
    },
  },
  components: parties.map(({ name, version, license }) => ({
    type: 'library',
    'bom-ref': purl(name, version),
    name,
    version,
    purl: purl(name, version),
    // An expression is valid where one identifier is, too.
    licenses: license === 'NOASSERTION' ? [] : [{ expression: license }],
  })),
});

const purl = (name: string, version: string) => `pkg:npm/${name.replace('@', '%40')}@${version}`;

/** Every package with the text of its license. */
export const notices = (parties: ThirdParty[]): string =>
  parties
    .map(({ name, version, license, folder }) => {
      const texts = licenseTexts(folder).map((text) => text.trim());
      return [`${name} ${version} (${license})`, ...texts].join('\n\n');
    })
    .join(`\n\n${'-'.repeat(80)}\n\n`);

/** All files or none, so that a full disk leaves the former ones. */
function replaceFiles(contents: Record<string, string>): void {
  const draftOf = (path: string) => `${path}.draft-${process.pid}`;
  try {
    for (const [path, content] of Object.entries(contents)) writeFileSync(draftOf(path), content);
    for (const path of Object.keys(contents)) renameSync(draftOf(path), path);
  } finally {
    for (const path of Object.keys(contents)) rmSync(draftOf(path), { force: true });
  }
}

if (import.meta.main) {
  const [sbom, text] = process.argv.slice(2);
  if (!sbom || !text) {
    process.stderr.write('Usage: bun server/deploy/third-party.ts SBOM.json LICENSES.txt\n');
    process.exit(2);
  }
  const parties = thirdParties();
  try {
    replaceFiles({
      [resolve(sbom)]: `${JSON.stringify(billOfMaterials(parties), null, 2)}\n`,
      [resolve(text)]: `${notices(parties)}\n`,
    });
  } catch (error) {
    process.stderr.write(`Nothing was written: ${(error as Error).message}\n`);
    process.exit(1);
  }
  process.stdout.write(`Wrote ${parties.length} packages to ${sbom} and ${text}\n`);
}
