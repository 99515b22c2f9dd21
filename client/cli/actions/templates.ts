import { Document } from 'yaml';
import { type Template, templateDocument } from '../../pipeline-file/template.ts';
import type { Cli } from '../context.ts';
import { pick } from '../find.ts';
import { showList } from '../table.ts';

const read = async (cli: Cli): Promise<Template[]> => (await cli.api()).templates.list.query();

export async function listTemplates(cli: Cli, { json }: { json: boolean }): Promise<void> {
  showList(cli, await read(cli), {
    json,
    empty: 'No templates',
    columns: { name: ({ name }) => name, title: ({ title }) => title },
    wide: { description: ({ description }) => description },
  });
}

/** Prints a template as a file for `apply`. */
export async function showTemplate(cli: Cli, { json }: { json: boolean }, wanted: string): Promise<void> {
  const all = (await read(cli)).map((template) => ({ ...template, id: template.name }));
  const { id: _id, ...template } = pick(all, wanted, 'template');
  if (json) {
    cli.document = template;
    return;
  }
  const file = new Document(templateDocument(template));
  file.commentBefore = commentOf(template);
  cli.print(file.toString({ lineWidth: 100 }).trimEnd());
}

function commentOf({ title, description, needs }: Template): string {
  const lines = [title, description, '', 'Needs:', ...needs.map((one) => `- ${one}`)];
  return lines.map((line) => (line === '' ? '' : ` ${line}`)).join('\n');
}
