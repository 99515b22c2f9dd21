import { startEmbeddedPostgres } from '../../db/embedded.ts';

// A separate process that uses the embedded PostgreSQL of a folder until its standard input ends. Tests kill it.
const [dataDir = '', kind] = process.argv.slice(2);
const server = await startEmbeddedPostgres({ dataDir, ephemeral: kind === 'ephemeral' });
process.stdout.write(`${server.url('pipelines')}\n`);
const reader = Bun.stdin.stream().getReader();
while (!(await reader.read()).done) continue;
await server.stop();
process.exit(0);
