import type { AnyDestination, AnySource, StreamSchema } from '../../connectors/contract/connector.ts';
import { isContinuous, type Schedule } from '../../pipeline/schedule.ts';
import { badRequest } from '../../platform/errors.ts';

/**
 * @param catalog of the source; empty: not discovered yet
 * @throws ApiError 400 `continuous_unsupported` when the source has no log to follow for this destination
 */
export function requireContinuous(
  schedule: Schedule,
  ends: { source_connector: AnySource; destination_connector: AnyDestination; catalog: readonly StreamSchema[] },
): void {
  if (!isContinuous(schedule)) return;
  const { source_connector, destination_connector, catalog } = ends;
  const refuse = (message: string) => badRequest('continuous_unsupported', message, { field: 'schedule.type' });
  if (!source_connector.replication) {
    throw refuse(`${source_connector.display_name} has no change log that can be followed. Use an interval`);
  }
  if (!destination_connector.openReplication) {
    throw refuse(
      `${destination_connector.display_name} cannot take the changes of several streams in one commit. Use an interval`,
    );
  }
  if (catalog.length > 0 && !catalog.some(({ change_log }) => change_log)) {
    throw refuse(
      'No stream of this source is read from its change log. Set its incremental reads to change data capture (CDC), refresh the schema, and try again',
    );
  }
}
