import { Button, Select, Textarea } from '@mantine/core';
import { useRef, useState } from 'react';
import { Icon } from '../../components/icon.tsx';
import { type Evaluation, useEvaluation } from './use-evaluation.ts';
import type { Language } from '../../answers.ts';

interface RuleEditorProps {
  language: Language;
  rule: string;
  onChange: (rule: string) => void;
}

const EXAMPLES: [label: string, rule: string][] = [
  ['A connection keeps failing', 'event == "connection_failed" && retry_count >= 3'],
  ['Fewer rows than usual', 'event == "connection_succeeded" && rows_loaded_zscore < -3.0'],
  ['A run takes much longer', 'event == "connection_succeeded" && duration_ms_zscore > 3.0'],
  ['A source schema changed', 'event in ["schema_changed", "schema_change_breaking"]'],
  ['Credentials expire soon', 'event == "credentials_expiring" && days_remaining <= 7'],
  ['A tagged connection fails', 'event == "connection_failed" && "finance" in tags'],
];

/** A rule with its variables and functions beside it, and its errors marked in place. */
export function RuleEditor({ language, rule, onChange }: RuleEditorProps) {
  const area = useRef<HTMLTextAreaElement>(null);
  const checked = useEvaluation(rule.trim() === '' ? null : { rule });
  const insert = (text: string) => {
    const { selectionStart: from = rule.length, selectionEnd: to = rule.length } = area.current ?? {};
    onChange(rule.slice(0, from) + text + rule.slice(to));
    requestAnimationFrame(() => {
      area.current?.focus();
      area.current?.setSelectionRange(from + text.length, from + text.length);
    });
  };
  return (
    <div className="rule-editor">
      <div className="stack">
        <Textarea
          ref={area}
          label="Rule"
          classNames={{ input: 'mono' }}
          autosize
          minRows={3}
          spellCheck={false}
          value={rule}
          error={rule.trim() === '' ? 'Enter a rule' : checked.data?.is_valid === false}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
        <div role="status">{checked.data && rule.trim() !== '' && <RuleCheck rule={rule} found={checked.data} />}</div>
        <div className="chips">
          {EXAMPLES.map(([label, example]) => (
            <Button key={label} size="compact-xs" variant="default" onClick={() => onChange(example)}>
              {label}
            </Button>
          ))}
        </div>
      </div>
      <RuleReference language={language} insert={insert} />
    </div>
  );
}

function RuleCheck({ rule, found }: { rule: string; found: Evaluation }) {
  if (found.is_valid) {
    const kinds = found.matched_kinds;
    return (
      <p className="verdict" data-tone="good">
        <Icon name="check" size={16} />
        <span>
          {kinds === null ? 'Can match every event type' : `Can match ${kinds.join(', ').replaceAll('_', ' ')}`}
          {found.warnings.map((warning) => (
            <span key={warning} className="dimmed">
              {' '}
              {warning}
            </span>
          ))}
        </span>
      </p>
    );
  }
  const { error } = found;
  const position = error?.position;
  const line = position ? (rule.split('\n')[position.line - 1] ?? '') : '';
  return (
    <div className="verdict" data-tone="bad">
      <Icon name="alert" size={16} />
      <div className="grow">
        {position && (
          <b>
            Line {position.line}, column {position.column}:{' '}
          </b>
        )}
        {error?.message} <code>{error?.code}</code>
        {position && (
          <pre className="code-block">
            {line}
            {'\n'}
            {' '.repeat(Math.max(0, position.column - 1))}^
          </pre>
        )}
      </div>
    </div>
  );
}

/** Variables by event type, and functions. Selecting one inserts it at the caret. */
function RuleReference({ language, insert }: { language: Language; insert: (text: string) => void }) {
  const [kind, setKind] = useState('connection_failed');
  const names = language.kinds.find(({ event }) => event === kind)?.variables ?? [];
  return (
    <aside className="rule-words" aria-label="Rule reference">
      <Select
        label="Variables of event type"
        data={language.kinds.map(({ event }) => event)}
        searchable
        value={kind}
        onChange={(value) => setKind(value ?? kind)}
      />
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
      <ul className="words" tabIndex={0} aria-label={`Variables of ${kind}`}>
        {names.map((name) => (
          <li key={name}>
            <button type="button" onClick={() => insert(name)}>
              <code>{name}</code> <small>{language.variables[name]}</small>
            </button>
          </li>
        ))}
      </ul>
      <p className="dimmed">
        <code>&amp;&amp; || ! == != &lt; &gt; in</code>, strings as <code>"…"</code>, lists as <code>[…]</code>.
        Functions:{' '}
        {language.functions.map((name) => (
          <code key={name}>{name} </code>
        ))}
      </p>
    </aside>
  );
}
