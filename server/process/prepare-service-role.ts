import { grantServiceRole, type ServiceRole } from '../../db/service-role.ts';
import { openLog } from '../platform/log.ts';
import { openQueue } from '../queue/boss.ts';

/** Creates the tables of the queue, then the role with which the service uses a migrated database. */
export async function prepareServiceRole(owner_url: string, role: ServiceRole): ReturnType<typeof grantServiceRole> {
  return grantServiceRole(owner_url, role, async () => {
    const queue = await openQueue({ url: owner_url, db: null, log: openLog('silent'), supervise: false });
    await queue.stop();
  });
}
