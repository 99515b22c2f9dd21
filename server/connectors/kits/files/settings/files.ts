import { z } from 'zod';
import type { ConnectorContext } from '../../../contract/connector.ts';
import { destinationLocation, httpSettings, requireLocation, s3Settings, sourceLocation } from './location.ts';

export const FORMAT_NAMES = ['csv', 'jsonl', 'parquet'] as const;
export type FormatName = (typeof FORMAT_NAMES)[number];

const formatLabels = { auto: 'By file extension', csv: 'CSV', jsonl: 'JSON Lines', parquet: 'Parquet' };
const character = z.string().length(1);

const csvSettings = {
  delimiter: character.default(',').meta({
    label: 'Delimiter',
    directs_secrets: false,
    description: 'The character between cells',
    group: 'advanced',
  }),
  quote: character.default('"').meta({
    label: 'Quote',
    directs_secrets: false,
    description: 'The character around cells; doubled within a cell',
    group: 'advanced',
  }),
  header: z.boolean().default(true).meta({
    label: 'Header',
    directs_secrets: false,
    description: 'The first line names the columns',
    group: 'advanced',
  }),
  null_value: z.string().max(100).default('').meta({
    label: 'NULL text',
    directs_secrets: false,
    description: 'An unquoted cell with this text is NULL; a quoted empty cell is the empty string',
    group: 'advanced',
  }),
};

const fileSource = z.object({
  location: sourceLocation,
  path: z
    .string()
    .min(1)
    .max(1000)
    .optional()
    .meta({
      label: 'Path',
      directs_secrets: false,
      description:
        'Relative to the files folder or the bucket. * ? [a-z] {a,b} and ** match several files, which form one stream',
      placeholder: 'orders/*.csv',
      validates_remotely: true,
      visible_when: { parameter: 'location', equals: ['local', 's3'] },
    }),
  ...httpSettings,
  ...s3Settings,
  format: z
    .enum(['auto', ...FORMAT_NAMES])
    .default('auto')
    .meta({
      label: 'Format',
      directs_secrets: false,
      description: 'Recognized extensions: .csv, .tsv, .jsonl, .ndjson, .parquet; text formats can also end in .gz',
      value_labels: formatLabels,
    }),
  stream_name: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .meta({ label: 'Stream name', directs_secrets: false, description: 'Default: derived from the path' }),
  primary_key: z.array(z.string().min(1)).default([]).meta({
    label: 'Primary key',
    directs_secrets: false,
    description: 'Columns that identify a row; required for merging',
    group: 'stream',
  }),
  include_file_columns: z.boolean().default(false).meta({
    label: 'File columns',
    directs_secrets: false,
    description: 'Adds _file_name and _file_modified_at to each row',
    group: 'stream',
  }),
  ...csvSettings,
  encoding: z
    .enum(['utf-8', 'utf-16le', 'windows-1252'])
    .default('utf-8')
    .meta({ label: 'Encoding', directs_secrets: false, group: 'advanced' }),
});
export const FileSourceConfig = fileSource.superRefine(requireLocation);
export type FileSourceConfig = z.infer<typeof FileSourceConfig>;

const fileDestination = z.object({
  location: destinationLocation,
  path: z.string().min(1).max(1000).default('.').meta({
    label: 'Folder',
    directs_secrets: false,
    description: 'Relative to the files folder or the bucket. Each table becomes a folder in it',
    validates_remotely: true,
  }),
  format: z
    .enum(FORMAT_NAMES)
    .default('csv')
    .meta({ label: 'Format', directs_secrets: false, value_labels: formatLabels }),
  gzip: z
    .boolean()
    .default(false)
    .meta({
      label: 'Compress with gzip',
      directs_secrets: false,
      description: 'For CSV and JSON Lines; Parquet files are always compressed',
      visible_when: { parameter: 'format', equals: ['csv', 'jsonl'] },
    }),
  ...s3Settings,
  ...csvSettings,
});
export const FileDestinationConfig = fileDestination.superRefine(requireLocation);
export type FileDestinationConfig = z.infer<typeof FileDestinationConfig>;

export type SourceContext = ConnectorContext<FileSourceConfig>;
export type DestinationContext = ConnectorContext<FileDestinationConfig>;

/** How a CSV file is written; its reader needs the same values. */
export type CsvDialect = Pick<FileSourceConfig, 'delimiter' | 'quote' | 'header' | 'null_value'>;
