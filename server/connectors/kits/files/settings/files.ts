import { z } from 'zod';
import type { ConnectorContext } from '../../../contract/connector.ts';
import { fixedWidthSettings, requireColumns } from './fixed-width.ts';
import { text } from './shown-at.ts';
import { recordElement } from './record-element.ts';
import {
  destinationLocation,
  destinationPlaces,
  requireLocation,
  s3Settings,
  sourceLocation,
  sourcePlaces,
} from './location.ts';

const OUTPUT_FORMAT_NAMES = ['csv', 'jsonl', 'parquet'] as const;
export type OutputFormatName = (typeof OUTPUT_FORMAT_NAMES)[number];
const FORMAT_NAMES = [...OUTPUT_FORMAT_NAMES, 'xlsx', 'avro', 'fixed_width', 'xml'] as const;
export type FormatName = (typeof FORMAT_NAMES)[number];

const outputLabels = { csv: 'CSV', jsonl: 'JSON Lines', parquet: 'Parquet' };
const formatLabels = {
  auto: 'By file extension',
  ...outputLabels,
  xlsx: 'Excel (.xlsx)',
  avro: 'Avro',
  fixed_width: 'Fixed width',
  xml: 'XML',
};
/** Windows-1252 includes what is often called Latin-1. */
const ENCODINGS = [
  'utf-8',
  'utf-16le',
  'utf-16be',
  'windows-1252',
  'windows-1250',
  'windows-1251',
  'iso-8859-2',
  'iso-8859-15',
  'koi8-r',
  'macintosh',
  'shift_jis',
  'euc-jp',
  'gb18030',
  'big5',
  'euc-kr',
] as const;
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
    description: 'The first line, or row of a sheet, names the columns',
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
        'Relative to the files folder, the bucket or the folder of the login. * ? [a-z] {a,b} and ** match several files, which form one stream',
      placeholder: 'orders/*.csv',
      validates_remotely: true,
      visible_when: { parameter: 'location', equals: ['local', 's3', 'sftp', 'ftp', 'azure', 'gcs'] },
    }),
  ...sourcePlaces,
  ...s3Settings,
  format: z
    .enum(['auto', ...FORMAT_NAMES])
    .default('auto')
    .meta({
      label: 'Format',
      directs_secrets: false,
      description:
        'Recognized extensions: .csv, .tsv, .jsonl, .ndjson, .parquet, .xlsx, .xlsm, .avro, .fwf, .xml; text formats can also end in .gz or .zst, and files can be in .zip',
      value_labels: formatLabels,
    }),
  ...fixedWidthSettings,
  archive_members: text().optional().meta({
    label: 'Files in ZIP archives',
    directs_secrets: false,
    description: 'A name or pattern within the archives. Default: all files',
    placeholder: '**/*.csv',
    group: 'stream',
  }),
  sheet: text(255).optional().meta({
    label: 'Sheet',
    directs_secrets: false,
    description: 'The name of a sheet in Excel files, or its number. Default: the first',
    group: 'stream',
  }),
  record_element: recordElement,
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
  encoding: z.enum(ENCODINGS).default('utf-8').meta({
    label: 'Encoding',
    directs_secrets: false,
    description:
      'Of CSV, JSON Lines and fixed-width files, and of XML files that do not name theirs. windows-1252 includes Latin-1',
    group: 'advanced',
  }),
});
export const FileSourceConfig = fileSource.superRefine((settings, ctx) => {
  requireLocation(settings, ctx);
  requireColumns(settings, ctx);
});
export type FileSourceConfig = z.infer<typeof FileSourceConfig>;

const fileDestination = z.object({
  location: destinationLocation,
  path: z.string().min(1).max(1000).default('.').meta({
    label: 'Folder',
    directs_secrets: false,
    description:
      'Relative to the files folder, the bucket or the folder of the login. Each table becomes a folder in it',
    validates_remotely: true,
  }),
  format: z
    .enum(OUTPUT_FORMAT_NAMES)
    .default('csv')
    .meta({ label: 'Format', directs_secrets: false, value_labels: outputLabels }),
  gzip: z
    .boolean()
    .default(false)
    .meta({
      label: 'Compress with gzip',
      directs_secrets: false,
      description: 'For CSV and JSON Lines; Parquet files are always compressed',
      visible_when: { parameter: 'format', equals: ['csv', 'jsonl'] },
    }),
  ...destinationPlaces,
  ...s3Settings,
  ...csvSettings,
});
export const FileDestinationConfig = fileDestination.superRefine(requireLocation);
export type FileDestinationConfig = z.infer<typeof FileDestinationConfig>;

export type SourceContext = ConnectorContext<FileSourceConfig>;
export type DestinationContext = ConnectorContext<FileDestinationConfig>;

/** How a CSV file is written; its reader needs the same values. */
export type CsvDialect = Pick<FileSourceConfig, 'delimiter' | 'quote' | 'header' | 'null_value'>;
