import { createRedactor } from '../../server/platform/redaction/redact.ts';
import { HOSTILE_PARTS, SEARCHED_VALUES } from '../support/hostile-texts.ts';

/**
 * How fast secrets are searched and replaced in ordinary texts and in hostile ones, in MB per second of processor time:
 * `bun tests/bench/redaction.ts`.
 */
const LENGTH = 4_000_000;
const ROUNDS = 10;
const { text } = createRedactor(SEARCHED_VALUES);

const record = (id: number) => ({ id, name: `name ${id}`, email: `u${id}@example.com`, note: 'some ordinary text' });
const line = (page: number) => `2026-01-01T00:00:00Z GET /v1/items?page=${page} 200 in 12 ms\n`;
const numbers = [...Array(LENGTH / 50).keys()];
const texts: [string, string][] = [
  ['records in JSON', JSON.stringify(numbers.map(record)).slice(0, LENGTH)],
  ['log lines', numbers.map(line).join('').slice(0, LENGTH)],
  ...HOSTILE_PARTS.map((part): [string, string] => [part, part.repeat(LENGTH / part.length)]),
];

for (const [name, input] of texts) {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage();
    text(input);
    const { user, system } = process.cpuUsage(before);
    return user + system;
  });
  const speeds = rounds.map((microseconds) => Math.round(input.length / microseconds)).toSorted((a, b) => a - b);
  console.log(`${name.slice(0, 30).padEnd(32)} median ${speeds[ROUNDS / 2]}, best ${speeds.at(-1)} MB/s`);
}
