/**
 * `bun tests/bench/xml.ts [rows]`: an XML file into PostgreSQL. Peak memory of the worker, with a goal, and seconds. Needs
 * Debian's postgresql-15.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startCluster } from './cluster.ts';
import { untilQuiet } from './quiet.ts';
import { record, verdict } from './report.ts';
import { connectFile, runToEnd, startService } from './service.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const GOAL_MB = 250;
const ROWS_AT_ONCE = 10_000;

const cluster = await startCluster();
const service = await startService();
try {
  const folder = join(service.data_dir, 'files');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'events.xml');
  await writeDocument(file);
  const connection = await connectFile(service, cluster, { path: 'events.xml', stream: 'events' });
  await untilQuiet();
  const before = service.seconds();
  const { run, seconds } = await runToEnd(service, connection);
  const processor = service.seconds() - before;
  const peak = service.workerPeakMb();
  const megabytes = Math.round(Bun.file(file).size / 1e6);
  const time = `${seconds.toFixed(1)} s, ${processor.toFixed(1)} processor seconds of the worker`;
  console.log(`\nXML (${megabytes} MB) to PostgreSQL: ${run.rows_loaded} rows in ${time}`);
  record({ title: 'XML to PostgreSQL', rows: ROWS, figures: { seconds, processor, peak_mb: peak } });
  verdict(run.rows_loaded === ROWS, `${run.rows_loaded} of ${ROWS} rows`);
  verdict(peak <= GOAL_MB, `worker's peak memory: ${peak} MB, goal ${GOAL_MB}`);
} finally {
  await service.stop();
  await cluster.stop();
}

async function writeDocument(path: string): Promise<void> {
  const out = Bun.file(path).writer();
  await out.write('<?xml version="1.0" encoding="UTF-8"?>\n<events>\n');
  for (let first = 1; first <= ROWS; first += ROWS_AT_ONCE) {
    const count = Math.min(ROWS_AT_ONCE, ROWS - first + 1);
    await out.write(Array.from({ length: count }, (_, offset) => event(first + offset)).join(''));
    await out.flush();
  }
  await out.write('</events>\n');
  await out.end();
}

function event(id: number): string {
  const note = `note ${Bun.hash(String(id)).toString(16)}`;
  const tags = `<tag>${id % 7}</tag>${id % 2 ? '<tag>odd</tag>' : ''}`;
  const place = `<place country="DE"><city>München</city></place>`;
  return `<event id="${id}"><kind>${id % 100}</kind><note>${note}</note><amount>${id * 1.25}</amount>${place}${tags}</event>\n`;
}
