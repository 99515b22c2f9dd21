import { environmentOf } from '../../server/config.ts';
import { openLog } from '../../server/lib/log.ts';
import { superviseWorker } from '../../server/supervise.ts';
import { testConfig } from './database.ts';

// A process of its own that supervises a worker: to be killed. Prints the worker's process number.
const [url = '', dataDir = ''] = process.argv.slice(2);
const worker = superviseWorker({ env: environmentOf(testConfig(dataDir), url), log: openLog('silent') });
process.stdout.write(`${worker.pid()}\n`);
