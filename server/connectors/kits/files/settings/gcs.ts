import { z } from 'zod';
import { shownAt, text } from './shown-at.ts';

export const gcsSettings = {
  service_account_key: text(20_000)
    .optional()
    .meta({
      label: 'Service account key',
      description:
        'The whole JSON file. The account needs the role Storage Object Viewer (a destination: Storage Object User)',
      secret: true,
      group: 'authentication',
      validates_remotely: true,
      ...shownAt('gcs'),
    }),
};

const All = z.object(gcsSettings);
export type GcsLocation = z.infer<typeof All> & { bucket?: string; endpoint?: string; timeout_seconds: number };
