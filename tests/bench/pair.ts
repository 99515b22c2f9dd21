import { type Cluster, startCluster } from './cluster.ts';
import { median, record, type Times } from './report.ts';
import { runToEnd, type Service } from './service.ts';

/** Processor seconds. `mover`: the worker, or the commands of a peer. */
interface Work {
  source: number;
  destination: number;
  mover: number;
}

/** Two servers, so that the processor time of each side is known, and contestants that move rows from one to the other. */
export interface Pair {
  from: Cluster;
  to: Cluster;
  times: Times;
  /** A command with $SRC and $DST as URLs. */
  command(name: string, text: string): void;
  /** A run of a connection to its end. @returns the rows that it has loaded */
  run(name: string, connection_id: string): Promise<number>;
  endpoint(side: 'source' | 'destination', name: string, parameters?: object): Promise<string>;
  /** Prints and records processor seconds by contestant, medians of the rounds. */
  reportWork(title: string): void;
  stop(): Promise<void>;
}

export async function startPair(service: Service): Promise<Pair> {
  const from = await startCluster();
  const to = await startCluster();
  const times: Times = {};
  const works: Record<string, Work[]> = {};
  const spent = () => ({ source: from.seconds(), destination: to.seconds() });
  const note = (name: string, seconds: number, mover: number, before: Omit<Work, 'mover'>) => {
    const { source, destination } = spent();
    (times[name] ??= []).push(seconds);
    (works[name] ??= []).push({ source: source - before.source, destination: destination - before.destination, mover });
  };
  const env = { SRC: from.url('src'), DST: to.url('dst') };
  return {
    from,
    to,
    times,
    command(name, text) {
      to.psql('dst', 'checkpoint');
      const before = spent();
      const { seconds, processor } = to.run(text, env);
      note(name, seconds, processor, before);
    },
    async run(name, connection_id) {
      to.psql('dst', 'checkpoint');
      const before = spent();
      const worker = service.seconds();
      const { run, seconds } = await runToEnd(service, connection_id);
      note(name, seconds, service.seconds() - worker, before);
      return run.rows_loaded;
    },
    async endpoint(side, name, more = {}) {
      const { host, port, username, password } = side === 'source' ? from : to;
      const database = side === 'source' ? 'src' : 'dst';
      const made = await service.call<{ id: string; status: string }>('POST', '/account_connectors', {
        name: `${name} ${side}`,
        connector_type: side,
        connector_name: 'postgres',
        parameters: { host, port, database, username, password, ssl_mode: 'disable', ...more },
      });
      if (made.status !== 'active') throw new Error(`${side} is ${made.status}`);
      return made.id;
    },
    reportWork(title) {
      const figures: Record<string, number> = {};
      console.log('  processor seconds (medians)');
      for (const [name, rounds] of Object.entries(works)) {
        const of = (side: keyof Work) => median(rounds.map((work) => work[side]));
        const all = { source: of('source'), destination: of('destination'), mover: of('mover') };
        const sides = Object.entries(all).map(([side, seconds]) => {
          figures[`${name}: ${side}`] = seconds;
          return `${side} ${seconds.toFixed(2)}`;
        });
        const total = Object.values(all).reduce((sum, one) => sum + one, 0);
        console.log(`    ${name.padEnd(44)} ${total.toFixed(2)}   (${sides.join(', ')})`);
      }
      record({ title: `${title}, processor seconds`, figures });
    },
    async stop() {
      await Promise.all([from.stop(), to.stop()]);
    },
  };
}
