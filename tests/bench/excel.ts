/**
 * `bun tests/bench/excel.ts [rows]`: an Excel file into PostgreSQL. Peak memory of the worker, with a goal, and seconds.
 * Needs Debian's postgresql-15.
 */
import { createWriteStream, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Zip, ZipDeflate } from 'fflate';
import { startCluster } from './cluster.ts';
import { untilQuiet } from './quiet.ts';
import { record, verdict } from './report.ts';
import { connectFile, runToEnd, startService } from './service.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const GOAL_MB = 250;
const ROWS_AT_ONCE = 10_000;
const LETTERS = 'ABCDEFGH';
const HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"';
const RELATIONS = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const PACKAGE = 'http://schemas.openxmlformats.org/package/2006';
const TYPE = 'application/vnd.openxmlformats-officedocument.spreadsheetml';

const cluster = await startCluster();
const service = await startService();
try {
  const folder = join(service.data_dir, 'files');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'events.xlsx');
  await writeWorkbook(file);
  const connection = await connectFile(service, cluster, { path: 'events.xlsx', stream: 'events' });
  await untilQuiet();
  const { run, seconds } = await runToEnd(service, connection);
  const peak = service.workerPeakMb();
  const megabytes = Math.round(Bun.file(file).size / 1e6);
  console.log(`\nExcel (${megabytes} MB) to PostgreSQL: ${run.rows_loaded} rows in ${seconds.toFixed(1)} s`);
  record({ title: 'Excel to PostgreSQL', rows: ROWS, figures: { seconds, peak_mb: peak } });
  verdict(run.rows_loaded === ROWS, `${run.rows_loaded} of ${ROWS} rows`);
  verdict(peak <= GOAL_MB, `worker's peak memory: ${peak} MB, goal ${GOAL_MB}`);
} finally {
  await service.stop();
  await cluster.stop();
}

/** Texts stand in the cells, as programs that write workbooks in one pass leave them. */
async function writeWorkbook(path: string): Promise<void> {
  const out = createWriteStream(path);
  const zip = new Zip((error, bytes) => {
    if (error) throw error;
    out.write(bytes);
  });
  const add = (name: string, pieces: Iterable<string>) => {
    const entry = new ZipDeflate(name, { level: 1 });
    zip.add(entry);
    for (const piece of pieces) entry.push(Buffer.from(piece));
    entry.push(new Uint8Array(), true);
  };
  add('[Content_Types].xml', [
    `${HEAD}<Types xmlns="${PACKAGE}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="${TYPE}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="${TYPE}.worksheet+xml"/></Types>`,
  ]);
  add('_rels/.rels', [
    `${HEAD}<Relationships xmlns="${PACKAGE}/relationships"><Relationship Id="rId1" Type="${RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
  ]);
  add('xl/workbook.xml', [
    `${HEAD}<workbook ${MAIN} xmlns:r="${RELATIONS}"><sheets><sheet name="events" sheetId="1" r:id="rId1"/></sheets></workbook>`,
  ]);
  add('xl/_rels/workbook.xml.rels', [
    `${HEAD}<Relationships xmlns="${PACKAGE}/relationships"><Relationship Id="rId1" Type="${RELATIONS}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
  ]);
  add('xl/worksheets/sheet1.xml', sheet());
  zip.end();
  await new Promise<void>((resolve) => out.end(resolve));
}

function* sheet(): Generator<string> {
  yield `${HEAD}<worksheet ${MAIN}><sheetData>`;
  yield row(1, ['id', 'kind', 'note', 'amount', 'flag', 'payload', 'score', 'city']);
  for (let first = 1; first <= ROWS; first += ROWS_AT_ONCE) {
    const count = Math.min(ROWS_AT_ONCE, ROWS - first + 1);
    yield Array.from({ length: count }, (_, offset) => {
      const id = first + offset;
      const note = `note ${Bun.hash(String(id)).toString(16)}`;
      return row(id + 1, [id, id % 100, note, id * 1.25, id % 3 === 0, `{"i": ${id}}`, id / 8, 'München']);
    }).join('');
  }
  yield '</sheetData></worksheet>';
}

function row(number: number, values: (string | number | boolean)[]): string {
  const cells = values.map((value, at) => {
    const place = `r="${LETTERS[at]}${number}"`;
    if (typeof value === 'number') return `<c ${place}><v>${value}</v></c>`;
    if (typeof value === 'boolean') return `<c ${place} t="b"><v>${Number(value)}</v></c>`;
    return `<c ${place} t="inlineStr"><is><t>${value.replaceAll('"', '&quot;')}</t></is></c>`;
  });
  return `<row r="${number}">${cells.join('')}</row>`;
}
