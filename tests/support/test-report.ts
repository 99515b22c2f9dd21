import { XMLParser } from 'fast-xml-parser';

/** What the JUnit report of `bun test` says. `failed`: each failed test with its place and its message. */
export interface TestReport {
  tests: number;
  failures: number;
  skipped: number;
  failed: string[];
}

interface Case {
  '@name': string;
  '@classname'?: string;
  '@file'?: string;
  '@line'?: string;
  failure?: { '@message'?: string; '#text'?: string };
}

interface Suite {
  '@tests'?: string;
  '@failures'?: string;
  '@skipped'?: string;
  testsuite?: Suite[];
  testcase?: Case[];
}

const parser = new XMLParser({
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  isArray: (name) => name === 'testsuite' || name === 'testcase',
  // The messages of failures hold thousands of entities, which the parser limits against hostile documents.
  processEntities: { enabled: true, maxTotalExpansions: Infinity, maxExpandedLength: Infinity },
  htmlEntities: true,
  parseAttributeValue: false,
  parseTagValue: false,
});

export function readTestReport(xml: string): TestReport {
  const { testsuites: root = {} } = parser.parse(xml) as { testsuites?: Suite };
  return {
    tests: Number(root['@tests'] ?? 0),
    failures: Number(root['@failures'] ?? 0),
    skipped: Number(root['@skipped'] ?? 0),
    failed: failedCases(root).map(describeFailure),
  };
}

const failedCases = (suite: Suite): Case[] => [
  ...(suite.testcase ?? []).filter((each) => each.failure !== undefined),
  ...(suite.testsuite ?? []).flatMap(failedCases),
];

function describeFailure(failed: Case): string {
  const name = [failed['@classname'], failed['@name']].filter(Boolean).join(' > ');
  const why = failed.failure?.['#text'] ?? failed.failure?.['@message'] ?? '';
  return `${failed['@file']}:${failed['@line'] ?? '?'} ${name}\n${why.trim().replaceAll(/^/gm, '    ')}`;
}
