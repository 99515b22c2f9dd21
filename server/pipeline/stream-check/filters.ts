import { filterFinding } from '../../connectors/cells/filters.ts';
import { factName } from '../../connectors/contract/change-fields.ts';
import type { Field, Filter, StreamSchema } from '../../connectors/contract/connector.ts';
import { fieldName } from '../transfer-plan.ts';
import type { SettingFinding } from './finding.ts';
import type { StreamSettings } from './settings.ts';

/** Filters that no row could pass, or that sources would understand differently. */
export function checkFilters(
  { filters, destination_sync_mode }: Pick<StreamSettings, 'filters' | 'destination_sync_mode'>,
  { fields, change_log }: Pick<StreamSchema, 'fields' | 'change_log'>,
): SettingFinding[] {
  const keepsChanges = destination_sync_mode === 'append';
  return filters.flatMap((filter, index): SettingFinding[] => {
    const field = fields.find(({ path }) => fieldName(path) === filter.field);
    const isOfChange = change_log === true && field !== undefined && factName(field) !== null;
    const found = isOfChange && !keepsChanges ? notOfRow(filter) : field && checkFilter(filter, field);
    if (!found) return [];
    return [{ code: 'invalid_filter', message: found.message, place: ['filters', index, ...found.place] }];
  });
}

/** A row whose last change is left out would stay as it was, or be deleted. */
const notOfRow = ({ field }: Filter) => ({
  message: `Filter on ${field}: it describes a change, not the row, so only streams that append their changes can filter on it`,
  place: ['field'],
});

const NULL_TESTS: readonly Filter['operator'][] = ['is_null', 'is_not_null'];

function checkFilter(filter: Filter, field: Field): Pick<SettingFinding, 'message' | 'place'> | null {
  const { operator, value } = filter;
  const refuse = (message: string, ...place: SettingFinding['place']) => ({
    message: `Filter on ${filter.field}: ${message}`,
    place,
  });
  if (NULL_TESTS.includes(operator) && value !== null && value !== undefined) {
    return refuse(`${operator} takes no value`, 'value');
  }
  if (Array.isArray(value) && value.length === 0) return refuse(`${operator} needs at least one value`, 'value');
  const values: unknown[] = Array.isArray(value) ? value : [value];
  const rounded = values.findIndex((one) => typeof one === 'number' && !isExact(one));
  if (rounded >= 0) {
    const place = Array.isArray(value) ? ['value', rounded] : ['value'];
    return refuse(`the number ${String(values[rounded])} may have lost digits in JSON. Send it as text`, ...place);
  }
  const finding = filterFinding(filter, field);
  return finding && { message: finding.message, place: [finding.place] };
}

/** Up to 15 digits, a decimal number and its double identify each other. */
const isExact = (value: number) =>
  Number.isInteger(value) ? Number.isSafeInteger(value) : Number(value.toPrecision(15)) === value;
