import { existsSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, sep } from 'node:path';
import type { Cluster } from './embedded-cluster.ts';

/** Names the DATA_DIR that a cluster outside of it belongs to. */
const BELONGS_TO = 'data_dir';

/**
 * Removes clusters of temporary DATA_DIRs that are gone: tests and trials as root would fill the disk otherwise. Any
 * other DATA_DIR may only be a volume that is not mounted yet, so its cluster is left alone, as is a running one.
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
