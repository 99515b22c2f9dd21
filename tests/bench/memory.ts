/**
 * `bun tests/bench/memory.ts [small] [large]`: peak memory of the worker process for 1M and for 10M rows, byte lane
 * (append) and row lane (a salted hash), each in a separate service.
 */
import { startCluster } from './cluster.ts';
import { untilQuiet } from './quiet.ts';
import { record } from './report.ts';
import { runToEnd, startService, untilDiscovered } from './service.ts';

const SIZES = [Number(process.argv[2] ?? 1_000_000), Number(process.argv[3] ?? 10_000_000)];

const cluster = await startCluster();
try {
  for (const size of SIZES) {
    cluster.psql(
      'src',
      `create table t_${size} as select i::bigint as id, 'note ' || md5(i::text) as note, i * 1.25 as amount, now() as at
       from generate_series(1, ${size}) i`,
    );
  }
  for (const lane of ['byte', 'row'] as const) {
    const peaks: number[] = [];
    await untilQuiet();
    for (const size of SIZES) peaks.push(await peakOf(lane, size));
    const [small = 0, large = 0] = peaks;
    record({ title: `memory, ${lane} lane`, figures: { small_mb: small, large_mb: large } });
    const ratio = large / small;
    const reached = ratio <= 1.05 && Math.max(...peaks) <= 150;
    console.log(
      `${reached ? 'reached' : 'MISSED '} ${lane} lane: ${peaks.join(' MB, ')} MB for ${SIZES.join(', ')} rows; ratio ${ratio.toFixed(2)} (goals 1.05 and 150 MB)`,
    );
  }
} finally {
  await cluster.stop();
}

async function peakOf(lane: 'byte' | 'row', size: number): Promise<number> {
  const service = await startService();
  try {
    const { host, port, username, password } = cluster;
    const end = async (connector_type: string, database: string) => {
      const parameters = { host, port, database, username, password, ssl_mode: 'disable' };
      const body = { name: connector_type, connector_type, connector_name: 'postgres', parameters };
      return (await service.call<{ id: string }>('POST', '/account_connectors', body)).id;
    };
    const fields = lane === 'row' ? [{ path: ['note'], masking: 'hash_sha256_salted' }] : [];
    const table = `${lane}_${size}`;
    const source_id = await end('source', 'src');
    await untilDiscovered(service, source_id);
    const connection = await service.call<{ id: string }>('POST', '/connections', {
      name: table,
      source_id,
      destination_id: await end('destination', 'dst'),
      streams: [
        {
          name: `t_${size}`,
          sync_mode: 'full_refresh',
          destination_sync_mode: 'append',
          destination_table: table,
          fields,
        },
      ],
    });
    await runToEnd(service, connection.id);
    cluster.psql('dst', `drop table ${table}`);
    return service.workerPeakMb();
  } finally {
    await service.stop();
  }
}
