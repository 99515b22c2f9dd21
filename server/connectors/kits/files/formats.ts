import { ConfigurationError } from '../../contract/errors.ts';
import { avroFormat } from './formats/avro/format.ts';
import { csvFormat } from './formats/csv/format.ts';
import { fixedWidthFormat } from './formats/fixed-width/format.ts';
import type { FileFormat, OutputFormat } from './formats/format.ts';
import { jsonlFormat } from './formats/jsonl/format.ts';
import { parquetFormat } from './formats/parquet/format.ts';
import { xlsxFormat } from './formats/xlsx/format.ts';
import { xmlFormat } from './formats/xml/format.ts';
import type { FileSourceConfig, FormatName, OutputFormatName } from './settings/files.ts';
import type { FoundFile } from './stores/store.ts';

/** Every format that destinations write. */
export const OUTPUT_FORMATS: Record<OutputFormatName, OutputFormat> = {
  csv: csvFormat,
  jsonl: jsonlFormat,
  parquet: parquetFormat,
};

/** Every file format. */
export const FORMATS: Record<FormatName, FileFormat> = {
  ...OUTPUT_FORMATS,
  xlsx: xlsxFormat,
  avro: avroFormat,
  fixed_width: fixedWidthFormat,
  xml: xmlFormat,
};

/** @throws ConfigurationError if neither the setting nor the extension determines the format */
export function formatOf(config: FileSourceConfig, file: FoundFile): FileFormat {
  if (config.format !== 'auto') return FORMATS[config.format];
  const format = Object.values(FORMATS).find(({ extension }) => extension.test(file.name));
  if (format) return format;
  throw new ConfigurationError(
    'format_unknown',
    `The extension of "${file.name}" does not match any format. Set the format`,
  );
}
