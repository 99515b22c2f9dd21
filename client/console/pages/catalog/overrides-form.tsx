import { Button, MultiSelect, Select } from '@mantine/core';
import { useState } from 'react';
import { client, type RouterInputs, trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { usePermission } from '../../current-user.ts';
import { FieldsEditor } from '../../streams/fields-editor.tsx';
import { useAction } from '../../use-action.ts';
import type { Source } from './find-streams.ts';
import type { CatalogItem } from '../../answers.ts';
import type { Stream } from '../../streams/stream.ts';

type Field = CatalogItem['fields'][number];
type Override = RouterInputs['account_connectors']['updateCatalog']['items'][number]['field_overrides'][number];
type Choices = Stream['fields'];

/** Key, cursor and fields of a stream, for every connection of the source. */
export function OverridesForm({ source, item }: { source: Source; item: CatalogItem }) {
  const may = usePermission('sources.update');
  const [choices, setChoices] = useState<Choices>(() => choicesOf(item.fields));
  const [key, setKey] = useState(() => keyOf(item));
  const [cursor, setCursor] = useState(() => cursorOf(item));
  const update = useAction(trpc.account_connectors.updateCatalog, {
    done: 'Settings saved',
    failed: null,
    refresh: [trpc.account_connectors.catalog],
    undo: {
      input: async ({ account_connector_id, items }) => {
        const catalog = await client.account_connectors.catalog.query({ account_connector_id });
        const now = catalog.find(({ stream_id }) => stream_id === item.stream_id) ?? item;
        return {
          account_connector_id,
          items: items.map((sent) => ({
            ...sent,
            field_overrides: sent.field_overrides.map((one) => former(now, one)),
          })),
        };
      },
      isCurrent: async (saved) => {
        const now = await client.account_connectors.catalog.query({ account_connector_id: source.id });
        const overrides = (catalog: CatalogItem[]) =>
          JSON.stringify(
            catalog.find(({ stream_id }) => stream_id === item.stream_id)?.fields.map(({ override }) => override),
          );
        return overrides(now) === overrides(saved);
      },
    },
  });
  const field_overrides = changedOverrides(item, { choices, key, cursor });
  const save = () =>
    update.mutate({ account_connector_id: source.id, items: [{ stream_id: item.stream_id, field_overrides }] });
  const names = item.fields.map(({ name }) => name);
  return (
    <fieldset className="bare-fieldset stack" disabled={!may}>
      <legend className="hidden">{item.name}</legend>
      <div className="fields">
        <MultiSelect label="Primary key" data={names} value={key} onChange={setKey} />
        <Select
          label="Cursor field"
          description="Identifies new and changed rows"
          data={names}
          value={cursor}
          clearable
          disabled={item.source_defined_cursor}
          onChange={setCursor}
        />
      </div>
      <FieldsEditor fields={choices} known={item.fields} onChange={setChoices} />
      {update.error && <Failure title="Settings not saved" error={update.error} />}
      {field_overrides.length > 0 && (
        <div className="form-foot">
          <Button loading={update.isPending} onClick={save}>
            Save settings
          </Button>
        </div>
      )}
    </fieldset>
  );
}

/** What a field had before it gets these settings; null for those that it did not have. */
function former({ fields }: CatalogItem, { path, ...sent }: Override): Override {
  const stored: Record<string, unknown> = {
    ...fields.find((field) => field.path.join('.') === path.join('.'))?.override,
  };
  return { path, ...Object.fromEntries(Object.keys(sent).map((key) => [key, stored[key] ?? null])) };
}

const choicesOf = (fields: readonly Field[]): Choices =>
  fields.flatMap(({ path, override }) =>
    override
      ? [
          {
            path,
            selected: override.excluded !== true,
            destination_name: override.destination_name,
            destination_type: override.type,
            masking: override.masking ?? 'none',
          },
        ]
      : [],
  );

/** The effective key: that of the source, changed by the overrides. */
const keyOf = ({ fields, source_defined_primary_key }: CatalogItem): string[] => {
  const own = new Set((source_defined_primary_key ?? []).map((path) => path.join('.')));
  return fields.filter(({ name, override }) => override?.is_primary_key ?? own.has(name)).map(({ name }) => name);
};

const cursorOf = ({ fields, default_cursor_field }: CatalogItem): string | null => {
  const own = default_cursor_field?.join('.') ?? null;
  const named = fields.find(({ override }) => override?.is_cursor === true)?.name;
  const dropped = fields.some(({ name, override }) => name === own && override?.is_cursor === false);
  return named ?? (dropped ? null : own);
};

interface Settings {
  choices: Choices;
  key: string[];
  cursor: string | null;
}

/** Only the keys that differ from what is stored; null removes one. */
function changedOverrides(item: CatalogItem, { choices, key, cursor }: Settings): Override[] {
  const settings = new Map(choices.map((one) => [one.path.join('.'), one]));
  const own = new Set((item.source_defined_primary_key ?? []).map((path) => path.join('.')));
  const ownCursor = item.default_cursor_field?.join('.') ?? null;
  return item.fields.flatMap(({ path, name, override }): Override[] => {
    const choice = settings.get(name);
    const wanted = {
      excluded: choice?.selected === false ? true : null,
      destination_name: choice?.destination_name ?? null,
      type: choice?.destination_type ?? null,
      masking: choice?.masking && choice.masking !== 'none' ? choice.masking : null,
      is_primary_key: key.includes(name) === own.has(name) ? null : key.includes(name),
      is_cursor: (cursor === name) === (ownCursor === name) ? null : cursor === name,
    };
    const before: Record<string, unknown> = { ...override };
    const changed = Object.entries(wanted).filter(([setting, value]) => (before[setting] ?? null) !== value);
    return changed.length === 0 ? [] : [{ path, ...Object.fromEntries(changed) }];
  });
}
