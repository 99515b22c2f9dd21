import { existsSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, sep } from 'node:path';
import type { Cluster } from './embedded-cluster.ts';

/** File that contains the DATA_DIR of a cluster stored outside of it. */
const BELONGS_TO = 'data_dir';

/**
 * Removes the clusters of temporary DATA_DIRs that no longer exist: tests as root would fill the disk otherwise. Any other
 * missing DATA_DIR may be an unmounted volume, so its cluster is kept, and so is a running one.
 */
export function removeOrphans(cluster: Cluster, dataDir: string): void {
  if (!cluster.owner) return;
  writeFileSync(join(cluster.home, BELONGS_TO), realpathSync(dataDir));
  const temporary = realpathSync(tmpdir()) + sep;
  const clusters = dirname(cluster.home);
  for (const name of readdirSync(clusters)) {
    const home = join(clusters, name);
    const path = ownerOf(home);
    const isOrphan = path?.startsWith(temporary) && !existsSync(path) && !existsSync(join(home, 'data/postmaster.pid'));
    if (isOrphan) rmSync(home, { recursive: true, force: true });
  }
}

function ownerOf(home: string): string | null {
  try {
    return readFileSync(join(home, BELONGS_TO), 'utf8');
  } catch {
    return null;
  }
}
