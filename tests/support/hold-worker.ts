import { environmentOf } from '../../server/platform/config.ts';
import { openLog } from '../../server/platform/log.ts';
import { superviseWorker } from '../../server/process/supervise.ts';
import { testConfig } from './database.ts';

// A process of its own that supervises a worker: to be killed. Prints the worker's process number.
const [url = '', dataDir = ''] = process.argv.slice(2);
const worker = superviseWorker({ env: environmentOf(testConfig(dataDir), url), log: openLog('silent') });
process.stdout.write(`${worker.pid()}\n`);
