/** `bun tests/contract/lint.ts`: checks the document by Redocly's linter with its strictest rules. Part of `bun run check`. */
import { createConfig, formatProblems, lintFromString } from '@redocly/openapi-core';
import { readContract } from './document.ts';

const { document, operations } = readContract();
const problems = await lintFromString({
  source: JSON.stringify(document, null, 2),
  absoluteRef: 'openapi.json',
  config: await createConfig({ extends: ['recommended-strict'] }),
});
formatProblems(problems, { format: 'codeframe', totals: { errors: 0, warnings: 0, ignored: 0 } });
console.log(`${operations.length} operations, ${problems.length} problems`);
process.exit(problems.length === 0 ? 0 : 1);
