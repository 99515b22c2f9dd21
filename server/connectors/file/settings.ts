import { z } from 'zod';
import {
  destinationLocation,
  httpSettings,
  requireLocation,
  s3Settings,
  sourceLocation,
} from '../kits/files/stores/location-settings.ts';

export const FORMATS = ['csv', 'jsonl', 'parquet'] as const;
export type FileFormat = (typeof FORMATS)[number];

const formatLabels = { auto: 'By the ending', csv: 'CSV', jsonl: 'JSON Lines', parquet: 'Parquet' };
const character = z.string().length(1);

const csvSettings = {
  delimiter: character
    .default(',')
    .meta({ label: 'Delimiter', description: 'One character between the cells', group: 'advanced' }),
  quote: character
    .default('"')
    .meta({ label: 'Quote', description: 'One character around cells; doubled inside', group: 'advanced' }),
  header: z
    .boolean()
    .default(true)
    .meta({ label: 'Header', description: 'The first line names the columns', group: 'advanced' }),
  null_value: z.string().max(100).default('').meta({
    label: 'Text for no value',
    description: 'An unquoted cell of this text is NULL; a quoted empty cell is the empty string',
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
      description:
        'Below the folder for files, or in the bucket; * ? [a-z] {a,b} and ** match several files, which together are one stream',
      placeholder: 'orders/*.csv',
      validates_remotely: true,
      visible_when: { parameter: 'location', equals: ['local', 's3'] },
    }),
  ...httpSettings,
  ...s3Settings,
  format: z
    .enum(['auto', ...FORMATS])
    .default('auto')
    .meta({
      label: 'Format',
      description: 'By the ending: .csv, .tsv, .jsonl, .ndjson, .parquet, each but Parquet also with .gz',
      value_labels: formatLabels,
    }),
  stream_name: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .meta({ label: 'Stream name', description: 'Default: out of the path' }),
  primary_key: z.array(z.string().min(1)).default([]).meta({
    label: 'Primary key',
    description: 'Columns that tell a row from all others; needed to merge',
    group: 'stream',
  }),
  include_file_columns: z.boolean().default(false).meta({
    label: 'Columns about the file',
    description: 'Adds _file_name and _file_modified_at to each row',
    group: 'stream',
  }),
  ...csvSettings,
  encoding: z
    .enum(['utf-8', 'utf-16le', 'windows-1252'])
    .default('utf-8')
    .meta({ label: 'Encoding', group: 'advanced' }),
});
export const FileSourceConfig = fileSource.superRefine(requireLocation);
export type FileSourceConfig = z.infer<typeof FileSourceConfig>;

const fileDestination = z.object({
  location: destinationLocation,
  path: z.string().min(1).max(1000).default('.').meta({
    label: 'Folder',
    description: 'Below the folder for files, or in the bucket; each table becomes a folder in it',
    validates_remotely: true,
  }),
  format: z.enum(FORMATS).default('csv').meta({ label: 'Format', value_labels: formatLabels }),
  gzip: z
    .boolean()
    .default(false)
    .meta({
      label: 'Compress with gzip',
      description: 'CSV and JSON Lines; Parquet is compressed by itself',
      visible_when: { parameter: 'format', equals: ['csv', 'jsonl'] },
    }),
  ...s3Settings,
  ...csvSettings,
});
export const FileDestinationConfig = fileDestination.superRefine(requireLocation);
export type FileDestinationConfig = z.infer<typeof FileDestinationConfig>;

/** What both sides must agree on to read a CSV file. */
export type CsvDialect = Pick<FileSourceConfig, 'delimiter' | 'quote' | 'header' | 'null_value'>;
