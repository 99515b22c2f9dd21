import { z } from 'zod';
import { rest } from '../../../api/endpoint.ts';
import { read, router } from '../../../api/procedure.ts';
import { PipelineTemplateSchema } from './schema.ts';
import { PIPELINE_TEMPLATES } from './templates.ts';

export const templatesRouter = router({
  list: read
    .concat(
      rest('GET', '/pipeline_templates', {
        operation_id: 'list_pipeline_templates',
        summary: 'List templates of common pipelines',
        description: 'Connectors, modes and schedule to start from, and what each pipeline needs.',
        addition: true,
      }),
    )
    .output(z.array(PipelineTemplateSchema))
    .query(() => [...PIPELINE_TEMPLATES]),
});
