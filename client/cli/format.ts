export const FORMATS = ['wide', 'json', 'yaml', 'csv', 'name'] as const;
export type Format = (typeof FORMATS)[number];

/** How the command in progress shows its result. */
export interface Output {
  format: Format | 'table';
  jq: string | null;
}

export const TABLE: Output = { format: 'table', jq: null };
